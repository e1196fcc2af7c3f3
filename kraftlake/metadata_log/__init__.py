"""The metadata log as a Delta table: the lake's one writer and its reader, and the snapshots kept beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.metadata_log.append.commit_queue import GroupLimits
    from kraftlake.metadata_log.append.creation import Contents
    from kraftlake.metadata_log.append.group_commit import GroupCommit
    from kraftlake.metadata_log.append.log_commit import commit_groups
    from kraftlake.metadata_log.chain import Chain, ChainLink
    from kraftlake.metadata_log.delta_table.commit import UnknownOutcomeError
    from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
    from kraftlake.metadata_log.delta_table.delta_log import NotADeltaTableError, read_table
    from kraftlake.metadata_log.delta_table.table_state import TableState
    from kraftlake.metadata_log.lakes import distinct_names, is_lake, lakes_at, names_many
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.metadata_log.maintenance.policy import UpkeepPolicy
    from kraftlake.metadata_log.maintenance.upkeep import Upkeep, UpkeepThread
    from kraftlake.metadata_log.reading.tail import LogTail, TailCursor
    from kraftlake.metadata_log.snapshots.policy import SinceSnapshot, SnapshotPolicy
    from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
    from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
    from kraftlake.metadata_log.storage.location import Location, fixed_location, lake_location
    from kraftlake.metadata_log.storage.object_path import is_object_uri

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
    "NotADeltaTableError",
    "SinceSnapshot",
    "SnapshotFacts",
    "SnapshotPolicy",
    "TableState",
    "TailCursor",
    "UnknownOutcomeError",
    "Upkeep",
    "UpkeepPolicy",
    "UpkeepThread",
    "commit_groups",
    "distinct_names",
    "fixed_location",
    "is_lake",
    "is_object_uri",
    "lake_location",
    "lakes_at",
    "names_many",
    "open_parquet_file",
    "read_table",
]


__getattr__, __dir__ = lazy_exports(__name__, __all__)
