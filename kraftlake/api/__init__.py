"""The Python API: a source of metadata, all queries on it, and the parts for programs.

`kraftlake` re-exports what most users need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_door import lazy_door

if TYPE_CHECKING:
    from kraftlake.api.events import Events
    from kraftlake.api.metrics import Metrics
    from kraftlake.api.source import Source, open_source
    from kraftlake.api.watch import Watch, WatchState
    from kraftlake.controller.config import ControllerConfig
    from kraftlake.controller.quorum.quorum_controller import QuorumController
    from kraftlake.delta.metadata_delta import MetadataDelta
    from kraftlake.delta.topics.topics_delta import TopicsDelta
    from kraftlake.diagnosis.trial.steps import Step
    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.image.provenance import MetadataProvenance
    from kraftlake.metadata_log.append.group_commit import GroupCommit
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.records.batch import RecordBatch
    from kraftlake.records.serde import ApiMessageAndVersion
    from kraftlake.replay.loader.lake_feed import LakeFeed
    from kraftlake.replay.loader.metadata_loader import MetadataLoader
    from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
    from kraftlake.replay.log.delta_chunk import DeltaChunk, LogBegin
    from kraftlake.replica_manager.replica_manager import ReplicaManager
    from kraftlake.runtime.clock import SystemClock
    from kraftlake.runtime.fault_handler import LoggingFaultHandler
    from kraftlake.tables.changes_writer import ChangesWriter
    from kraftlake.tables.lake_table import TableDescription

__all__ = [
    "ApiMessageAndVersion",
    "ChangesWriter",
    "ControllerConfig",
    "DeltaChunk",
    "Events",
    "GroupCommit",
    "LakeFeed",
    "LogBegin",
    "LoggingFaultHandler",
    "MetadataDelta",
    "MetadataImage",
    "MetadataLoader",
    "MetadataLog",
    "MetadataProvenance",
    "MetadataPublisher",
    "Metrics",
    "QuorumController",
    "RecordBatch",
    "ReplicaManager",
    "Source",
    "Step",
    "SystemClock",
    "TableDescription",
    "TopicsDelta",
    "Watch",
    "WatchState",
    "open_source",
]

__getattr__, __dir__ = lazy_door(
    __name__,
    {
        "ApiMessageAndVersion": "kraftlake.records.serde",
        "ChangesWriter": "kraftlake.tables.changes_writer",
        "ControllerConfig": "kraftlake.controller.config",
        "DeltaChunk": "kraftlake.replay.log.delta_chunk",
        "Events": "kraftlake.api.events",
        "GroupCommit": "kraftlake.metadata_log.append.group_commit",
        "LakeFeed": "kraftlake.replay.loader.lake_feed",
        "LogBegin": "kraftlake.replay.log.delta_chunk",
        "LoggingFaultHandler": "kraftlake.runtime.fault_handler",
        "MetadataDelta": "kraftlake.delta.metadata_delta",
        "MetadataImage": "kraftlake.image.metadata_image",
        "MetadataLoader": "kraftlake.replay.loader.metadata_loader",
        "MetadataLog": "kraftlake.metadata_log.log",
        "MetadataProvenance": "kraftlake.image.provenance",
        "MetadataPublisher": "kraftlake.replay.loader.metadata_publisher",
        "Metrics": "kraftlake.api.metrics",
        "QuorumController": "kraftlake.controller.quorum.quorum_controller",
        "RecordBatch": "kraftlake.records.batch",
        "ReplicaManager": "kraftlake.replica_manager.replica_manager",
        "Source": "kraftlake.api.source",
        "Step": "kraftlake.diagnosis.trial.steps",
        "SystemClock": "kraftlake.runtime.clock",
        "TableDescription": "kraftlake.tables.lake_table",
        "TopicsDelta": "kraftlake.delta.topics.topics_delta",
        "Watch": "kraftlake.api.watch",
        "WatchState": "kraftlake.api.watch",
        "open_source": "kraftlake.api.source",
    },
)
