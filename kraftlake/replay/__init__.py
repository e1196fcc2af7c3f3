"""The fold: replays a log into images and what each broker was told, imports it into a lake, verifies and exports it.

What is re-exported here is imported when it is first asked for, so that naming the room costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.replay.batch_loader import MetadataBatchLoader
    from kraftlake.replay.changes import LogChanges, Published
    from kraftlake.replay.committed import CommittedTo
    from kraftlake.replay.export import ExportReport
    from kraftlake.replay.fold import Replay, image_at, load_snapshot, replay_to
    from kraftlake.replay.follow_log import FollowStep, LogFollower
    from kraftlake.replay.image_columns import topics_from_arrow, topics_to_arrow
    from kraftlake.replay.import_log import import_source
    from kraftlake.replay.import_report import ImportReport
    from kraftlake.replay.lake_feed import LakeFeed
    from kraftlake.replay.loader import MetadataLoader
    from kraftlake.replay.loader_metrics import MetadataLoaderMetrics
    from kraftlake.replay.local_changes import LocalChanges
    from kraftlake.replay.log_reader import LogReader, SnapshotReader
    from kraftlake.replay.manifest import (
        LeaderAndEpoch,
        LoaderManifest,
        LogDeltaManifest,
        SkippedRecord,
        SnapshotManifest,
    )
    from kraftlake.replay.metadata_publisher import MetadataPublisher, MetadataUpdater
    from kraftlake.replay.open_reader import LakeReader
    from kraftlake.replay.quorum import QuorumState
    from kraftlake.replay.quorum_report import QuorumReport, describe_quorum
    from kraftlake.replay.record_types import RECORD_TYPES
    from kraftlake.replay.source import Source, open_source
    from kraftlake.replay.verify_report import Problem, VerifyReport

_HOMES = {
    "CommittedTo": "committed",
    "ExportReport": "export",
    "FollowStep": "follow_log",
    "ImportReport": "import_report",
    "LakeFeed": "lake_feed",
    "LakeReader": "open_reader",
    "LeaderAndEpoch": "manifest",
    "LoaderManifest": "manifest",
    "LocalChanges": "local_changes",
    "LogChanges": "changes",
    "LogDeltaManifest": "manifest",
    "LogFollower": "follow_log",
    "LogReader": "log_reader",
    "MetadataBatchLoader": "batch_loader",
    "MetadataLoader": "loader",
    "MetadataLoaderMetrics": "loader_metrics",
    "MetadataPublisher": "metadata_publisher",
    "MetadataUpdater": "metadata_publisher",
    "Problem": "verify_report",
    "Published": "changes",
    "QuorumReport": "quorum_report",
    "QuorumState": "quorum",
    "RECORD_TYPES": "record_types",
    "Replay": "fold",
    "SkippedRecord": "manifest",
    "SnapshotManifest": "manifest",
    "SnapshotReader": "log_reader",
    "Source": "source",
    "VerifyReport": "verify_report",
    "describe_quorum": "quorum_report",
    "image_at": "fold",
    "import_source": "import_log",
    "load_snapshot": "fold",
    "open_source": "source",
    "replay_to": "fold",
    "topics_from_arrow": "image_columns",
    "topics_to_arrow": "image_columns",
}

__all__ = [
    "RECORD_TYPES",
    "CommittedTo",
    "ExportReport",
    "FollowStep",
    "ImportReport",
    "LakeFeed",
    "LakeReader",
    "LeaderAndEpoch",
    "LoaderManifest",
    "LocalChanges",
    "LogChanges",
    "LogDeltaManifest",
    "LogFollower",
    "LogReader",
    "MetadataBatchLoader",
    "MetadataLoader",
    "MetadataLoaderMetrics",
    "MetadataPublisher",
    "MetadataUpdater",
    "Problem",
    "Published",
    "QuorumReport",
    "QuorumState",
    "Replay",
    "SkippedRecord",
    "SnapshotManifest",
    "SnapshotReader",
    "Source",
    "VerifyReport",
    "describe_quorum",
    "image_at",
    "import_source",
    "load_snapshot",
    "open_source",
    "replay_to",
    "topics_from_arrow",
    "topics_to_arrow",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOMES, __all__)
