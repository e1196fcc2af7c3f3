"""Reads and writes Kafka's own files: segments, snapshots, metadata directories and archives of them.

What is re-exported here is imported when it is first asked for, so that naming the room costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.runtime.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from kraftlake.kafka_files.archives.archive import open_archive
    from kraftlake.kafka_files.archives.members import ArchiveLimits
    from kraftlake.kafka_files.check import check_directory
    from kraftlake.kafka_files.directory import MetadataDirectory, NodeFiles, open_directory
    from kraftlake.kafka_files.faults import BrokenFileError, RemovedFileError
    from kraftlake.kafka_files.file_names import METADATA_DIRECTORY, segment_name, snapshot_name
    from kraftlake.kafka_files.follow import DirectoryFollower, TruncatedLogError
    from kraftlake.kafka_files.node.broker_directory import BrokerDirectory, ReplicaLog, read_broker_directory
    from kraftlake.kafka_files.node.meta_properties import find_properties, write_meta_properties
    from kraftlake.kafka_files.open_source import node_files, open_kafka_files
    from kraftlake.kafka_files.problem import Problem
    from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
    from kraftlake.kafka_files.snapshots.snapshot import Snapshot, read_snapshot
    from kraftlake.kafka_files.sniffing.sniffing import sniff
    from kraftlake.kafka_files.sniffing.source_kind import SourceKind
    from kraftlake.kafka_files.stored_file import DiskFile
    from kraftlake.kafka_files.writer import write_checkpoint, write_segment


__all__ = [
    "METADATA_DIRECTORY",
    "ArchiveLimits",
    "BrokenFileError",
    "BrokerDirectory",
    "DirectoryFollower",
    "DiskFile",
    "MetadataDirectory",
    "NodeFiles",
    "Problem",
    "RemovedFileError",
    "ReplicaLog",
    "Snapshot",
    "SourceKind",
    "TruncatedLogError",
    "check_directory",
    "checkpoint_batches",
    "find_properties",
    "node_files",
    "open_archive",
    "open_directory",
    "open_kafka_files",
    "read_broker_directory",
    "read_snapshot",
    "segment_name",
    "snapshot_name",
    "sniff",
    "write_checkpoint",
    "write_meta_properties",
    "write_segment",
]

__getattr__, __dir__ = lazy_exports(__name__, __all__)
