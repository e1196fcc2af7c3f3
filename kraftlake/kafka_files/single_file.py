"""A segment or a snapshot alone, told by its content whatever it is called, as a log of its own."""

from __future__ import annotations

from pathlib import Path

from kraftlake.kafka_files.directory import MetadataDirectory, first_base_offset, log_of
from kraftlake.kafka_files.node.meta_properties import find_cluster_id
from kraftlake.kafka_files.snapshots.snapshot import read_snapshot
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import DiskFile


def open_segment(path: str | Path) -> MetadataDirectory:
    """The log that one segment holds. It is the last segment of that log, so its tail may be torn."""
    file = DiskFile.at(path)
    based = [(first_base_offset(file), file)]
    cluster_id = find_cluster_id(Path(path).absolute().parent)
    return log_of(based, [], kind=SourceKind.SEGMENT, path=str(path), name=file.name, cluster_id=cluster_id)


def open_snapshot(path: str | Path) -> MetadataDirectory:
    """A log without batches and with one snapshot, at whose end it starts."""
    file = DiskFile.at(path)
    snapshots = [read_snapshot(file)]
    cluster_id = find_cluster_id(Path(path).absolute().parent)
    return log_of([], snapshots, kind=SourceKind.SNAPSHOT, path=str(path), name=file.name, cluster_id=cluster_id)
