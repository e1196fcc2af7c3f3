"""The metadata log as a Delta table: the lake's one writer and its reader, and the snapshots kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.metadata_log.appending import commit_groups
    from kraftlake.metadata_log.commit import UnknownOutcomeError
    from kraftlake.metadata_log.commit_queue import GroupLimits
    from kraftlake.metadata_log.founding import Contents
    from kraftlake.metadata_log.group_commit import GroupCommit
    from kraftlake.metadata_log.location import Location, lake_location
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.metadata_log.object_path import is_object_uri
    from kraftlake.metadata_log.snapshots import LakeSnapshot

__all__ = [
    "Contents",
    "GroupCommit",
    "GroupLimits",
    "LakeSnapshot",
    "Location",
    "MetadataLog",
    "UnknownOutcomeError",
    "commit_groups",
    "is_object_uri",
    "lake_location",
]

_MODULES = {
    "UnknownOutcomeError": "commit",
    "GroupLimits": "commit_queue",
    "GroupCommit": "group_commit",
    "Contents": "founding",
    "LakeSnapshot": "snapshots",
    "Location": "location",
    "MetadataLog": "log",
    "commit_groups": "appending",
    "is_object_uri": "object_path",
    "lake_location": "location",
}


def __getattr__(name: str) -> Any:
    # pyarrow is imported when a lake is touched, not when the command line starts.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
