"""What every room stands on: the error tree."""

from kraftlake.runtime.errors import (
    CorruptDataError,
    EnvironmentFaultError,
    ImportConflictError,
    KraftlakeError,
    LakeError,
    NotASourceError,
    OffsetError,
    ReplayError,
    UnknownRecordError,
    UnwritableMetadataError,
    UsageError,
)

__all__ = [
    "CorruptDataError",
    "EnvironmentFaultError",
    "ImportConflictError",
    "KraftlakeError",
    "LakeError",
    "NotASourceError",
    "OffsetError",
    "ReplayError",
    "UnknownRecordError",
    "UnwritableMetadataError",
    "UsageError",
]
