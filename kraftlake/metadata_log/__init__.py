"""The metadata log as a Delta table: the lake's one writer and its reader, and the snapshots kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.metadata_log.appending import commit_groups
    from kraftlake.metadata_log.chain import Chain, ChainLink
    from kraftlake.metadata_log.commit import UnknownOutcomeError
    from kraftlake.metadata_log.commit_queue import GroupLimits
    from kraftlake.metadata_log.founding import Contents
    from kraftlake.metadata_log.group_commit import GroupCommit
    from kraftlake.metadata_log.location import Location, lake_location
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.metadata_log.object_path import is_object_uri
    from kraftlake.metadata_log.snapshot_policy import SinceSnapshot, SnapshotPolicy
    from kraftlake.metadata_log.snapshots import LakeSnapshot
    from kraftlake.metadata_log.tail import LogTail, TailCursor
    from kraftlake.metadata_log.upkeep import Upkeep, UpkeepThread
    from kraftlake.metadata_log.upkeep_policy import UpkeepPolicy

__all__ = [
    "Chain",
    "ChainLink",
    "Contents",
    "GroupCommit",
    "GroupLimits",
    "LakeSnapshot",
    "Location",
    "LogTail",
    "MetadataLog",
    "SinceSnapshot",
    "SnapshotPolicy",
    "TailCursor",
    "UnknownOutcomeError",
    "Upkeep",
    "UpkeepPolicy",
    "UpkeepThread",
    "commit_groups",
    "is_object_uri",
    "lake_location",
]

_HOMES = {
    "Chain": "chain",
    "ChainLink": "chain",
    "LogTail": "tail",
    "SinceSnapshot": "snapshot_policy",
    "SnapshotPolicy": "snapshot_policy",
    "TailCursor": "tail",
    "Upkeep": "upkeep",
    "UpkeepPolicy": "upkeep_policy",
    "UpkeepThread": "upkeep",
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

__getattr__, __dir__ = lazy_exports(__name__, _HOMES, __all__)
