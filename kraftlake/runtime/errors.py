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


class UnwritableMetadataError(KraftlakeError):
    """An image holds what its metadata.version has no record for (Kafka's UnwritableMetadataException)."""


class EnvironmentFaultError(KraftlakeError):
    """Something outside is missing: Java, a package, a permission."""
