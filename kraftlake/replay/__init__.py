"""Replays a log into images and local changes, imports it into a lake, verifies, exports and restores it.

Exported names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.replay.comparing.held_alone import HeldAlone
    from kraftlake.replay.comparing.histories import History, compare_copies
    from kraftlake.replay.comparing.log_comparison import LogComparison, Relation, compare_logs
    from kraftlake.replay.comparing.log_copy import LogCopy, read_copy
    from kraftlake.replay.comparing.voters import Role, role_among
    from kraftlake.replay.comparing.words import alone_words, comparison_sentence, held_words
    from kraftlake.replay.imports.follow_log import FollowStep, LogFollower
    from kraftlake.replay.imports.import_log import ImportReport, import_source
    from kraftlake.replay.live.committed_tail import AskQuorum
    from kraftlake.replay.live.follow_quorum import QuorumFollower
    from kraftlake.replay.live.open_live import LiveLog, open_live
    from kraftlake.replay.live.open_quorum import observer_of
    from kraftlake.replay.live.patience import Patience
    from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
    from kraftlake.replay.loader.fold import Replay, image_at, load_snapshot, loader_at
    from kraftlake.replay.loader.image_columns import topics_from_arrow, topics_to_arrow
    from kraftlake.replay.loader.lake_feed import LakeFeed
    from kraftlake.replay.loader.leader_at import leader_at
    from kraftlake.replay.loader.loader_metrics import MetadataLoaderMetrics
    from kraftlake.replay.loader.manifest import (
        LeaderAndEpoch,
        LoaderManifest,
        LogDeltaManifest,
        SkippedRecord,
        SnapshotManifest,
    )
    from kraftlake.replay.loader.metadata_loader import MetadataLoader
    from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
    from kraftlake.replay.loader.quorum_state import QuorumState
    from kraftlake.replay.loader.record_faults import RECORD_FAULTS, decode_record, type_of
    from kraftlake.replay.log.open_transaction import TRANSACTION_MARKS, OpenTransaction
    from kraftlake.replay.queries.changes import ChangeFold, LogChanges, Published
    from kraftlake.replay.queries.export import ExportReport
    from kraftlake.replay.queries.local_changes import LocalChanges
    from kraftlake.replay.queries.quorum_report import QuorumReport, describe_quorum
    from kraftlake.replay.queries.record_types import RECORD_TYPES
    from kraftlake.replay.queries.source import LogSource
    from kraftlake.replay.reading.chunks import BULK_FROM, Chunk, chunks_of
    from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader
    from kraftlake.replay.reading.open_reader import LakeReader, is_lake
    from kraftlake.replay.reading.progress import Progress
    from kraftlake.replay.reading.replay_base import (
        broken_ranges,
        check_covered,
        check_unbroken,
        choose_base,
        has_beginning,
        readable_batches,
        usable_snapshots,
    )
    from kraftlake.replay.restore.restore_files import check_target, write_restore
    from kraftlake.replay.restore.restore_plan import MARGIN, RestorePlan, plan_restore
    from kraftlake.replay.verify.verification import verify_source
    from kraftlake.replay.verify.verify_report import VerifyReport


__all__ = [
    "BULK_FROM",
    "MARGIN",
    "RECORD_FAULTS",
    "RECORD_TYPES",
    "TRANSACTION_MARKS",
    "AskQuorum",
    "ChangeFold",
    "Chunk",
    "ExportReport",
    "FollowStep",
    "HeldAlone",
    "History",
    "ImportReport",
    "LakeFeed",
    "LakeReader",
    "LeaderAndEpoch",
    "LiveLog",
    "LoaderManifest",
    "LocalChanges",
    "LogChanges",
    "LogComparison",
    "LogCopy",
    "LogDeltaManifest",
    "LogFollower",
    "LogReader",
    "LogSource",
    "MetadataBatchLoader",
    "MetadataLoader",
    "MetadataLoaderMetrics",
    "MetadataPublisher",
    "OpenTransaction",
    "Patience",
    "Progress",
    "Published",
    "QuorumFollower",
    "QuorumReport",
    "QuorumState",
    "Relation",
    "Replay",
    "RestorePlan",
    "Role",
    "SkippedRecord",
    "SnapshotManifest",
    "SnapshotReader",
    "VerifyReport",
    "alone_words",
    "broken_ranges",
    "check_covered",
    "check_target",
    "check_unbroken",
    "choose_base",
    "chunks_of",
    "compare_copies",
    "compare_logs",
    "comparison_sentence",
    "decode_record",
    "describe_quorum",
    "has_beginning",
    "held_words",
    "image_at",
    "import_source",
    "is_lake",
    "leader_at",
    "load_snapshot",
    "loader_at",
    "observer_of",
    "open_live",
    "plan_restore",
    "read_copy",
    "readable_batches",
    "role_among",
    "topics_from_arrow",
    "topics_to_arrow",
    "type_of",
    "usable_snapshots",
    "verify_source",
    "write_restore",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
