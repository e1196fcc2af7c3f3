"""The exceptions of kraftlake: one tree under `KraftlakeError`, each saying where the fault is and the way out."""

from __future__ import annotations


class KraftlakeError(Exception):
    """A fault that its reader can act on: one clear sentence, with the offset, file, table or option at fault.

    The command line prints the message and exits with `exit_code`; anything else that escapes is a bug of ours.
    """

    exit_code = 1


class UsageError(KraftlakeError):
    """What was asked for makes no sense whatever the data holds: a wrong option or argument."""

    exit_code = 2


class NotASourceError(KraftlakeError):
    """The path is missing, or is nothing that holds a metadata log; the message says what it is instead."""


class CorruptDataError(KraftlakeError):
    """Bytes that can't be what they should be: a bad CRC, a broken batch or record, a limit exceeded."""


class UnknownRecordError(KraftlakeError):
    """A record of a type or version that this release can't replay; `offset` is None where nobody gave it."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class ReplayError(KraftlakeError):
    """A record that contradicts the image it is replayed on; `offset` is its own, None where nobody gave it."""

    def __init__(self, message: str, *, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class OffsetError(KraftlakeError):
    """An offset or time outside of what the source can answer for."""


class ImportConflictError(KraftlakeError):
    """What is imported disagrees with the lake: a gap, another epoch or other bytes, another cluster."""


class LakeError(KraftlakeError):
    """A lake that is missing, in the way, of another schema, or being written by somebody else."""


class FencedEpochError(LakeError):
    """A writer of an epoch after which another was claimed: nothing of it is, or will be, in the log."""

    def __init__(self, epoch: int, current_epoch: int) -> None:
        super().__init__(
            f"Epoch {epoch} is fenced: epoch {current_epoch} was claimed after it, so nothing can be appended with it."
        )
        self.epoch = epoch
        self.current_epoch = current_epoch


class EndOffsetError(LakeError):
    """A writer of the current epoch that is wrong about where the log ends; nothing of it is in the log."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(
            f"The append was to begin at offset {expected}, but the log ends at {actual}: read it up to there first."
        )
        self.expected = expected
        self.actual = actual


class QueueFullError(KraftlakeError):
    """More is waiting than may wait; nothing of what was refused will be done."""


class UnwritableMetadataError(KraftlakeError):
    """An image holds what its metadata.version has no record for (Kafka's UnwritableMetadataException)."""


class EnvironmentFaultError(KraftlakeError):
    """Something outside is missing: Java, a package, a permission."""
