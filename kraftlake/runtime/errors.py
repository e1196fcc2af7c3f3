"""The exceptions of kraftlake, all `KraftlakeError`: their messages have the place of the fault and a remedy."""

from __future__ import annotations


class KraftlakeError(Exception):
    """A fault that the user can act on: one clear sentence, with the offset, file, table or option at fault.

    The command line prints the message and exits with `exit_code`; any other exception that reaches it is a bug.
    """

    exit_code = 1


class UsageError(KraftlakeError):
    """A wrong option or argument, independent of the data."""

    exit_code = 2


class NotASourceError(KraftlakeError):
    """The path does not exist, or does not hold a metadata log; the message names its content."""


class CorruptDataError(KraftlakeError):
    """Invalid bytes: a wrong CRC, a malformed batch or record, an exceeded limit."""


class UnknownRecordError(KraftlakeError):
    """A record of a type or version that this release can't replay; `offset` is None if it is unknown."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class ReplayError(KraftlakeError):
    """A record that contradicts the image on which it is replayed; `offset` is its offset, None if it is unknown."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class OffsetError(KraftlakeError):
    """An offset or time outside of the range that the source covers."""


class NoSuchThingError(KraftlakeError):
    """A topic, broker, config or another named object does not exist at an offset.

    `removed_at` is the offset of the record that removed it; None if there is none.
    """

    def __init__(self, message: str, *, removed_at: int | None = None) -> None:
        super().__init__(message)
        self.removed_at = removed_at


class ImportConflictError(KraftlakeError):
    """Imported data contradicts the lake: a gap, another epoch, other bytes, another cluster."""


class LakeError(KraftlakeError):
    """A lake does not exist, exists already, has another schema, or has another writer."""


class TooEarlyError(LakeError):
    """A removal that something forbids as yet: what has still to be read, or another run."""


class RefusedReadError(LakeError):
    """The disk or the object store refuses a read of a lake, independent of the lake's content: a retry may succeed."""


class FencedEpochError(LakeError):
    """A later epoch than the writer's was claimed; no part of the append is, or will be, in the log."""

    def __init__(self, epoch: int, current_epoch: int) -> None:
        super().__init__(
            f"Epoch {epoch} is fenced: epoch {current_epoch} was claimed after it, so nothing can be appended with it."
        )
        self.epoch = epoch
        self.current_epoch = current_epoch


class EndOffsetError(LakeError):
    """The writer expects another end of the log; no part of the append is in the log."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(
            f"The append was to begin at offset {expected}, but the log ends at {actual}: read it up to there first."
        )
        self.expected = expected
        self.actual = actual


class QueueFullError(KraftlakeError):
    """A queue is full; the refused item will not be processed."""


class UnwritableMetadataError(KraftlakeError):
    """An image has state that its metadata.version can't express as records (Kafka's UnwritableMetadataException)."""


class EnvironmentFaultError(KraftlakeError):
    """The environment lacks something: Java, a package, a permission."""


def sentence_of(error: Exception) -> str:
    """The sentence of an error of kraftlake, of the system, or of a bug, which is to be reported."""
    if isinstance(error, KraftlakeError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"this takes more memory than there is{f': {error}' if str(error) else ''}"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return f"a fault in kraftlake itself ({type(error).__name__}: {error}); please report it"
