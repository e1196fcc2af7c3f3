"""A segment or a snapshot alone, identified by its content and not by its name, as a log of its own."""

from __future__ import annotations

from pathlib import Path

from kraftlake.kafka_files.directory import MetadataDirectory, first_base_offset, log_of
from kraftlake.kafka_files.node.meta_properties import find_properties
from kraftlake.kafka_files.snapshots.snapshot import read_snapshot
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import DiskFile


def open_segment(path: str | Path) -> MetadataDirectory:
    """The log that one segment holds. It is the last segment of that log, so its tail may be torn."""
    return _open_alone(path, SourceKind.SEGMENT)


def open_snapshot(path: str | Path) -> MetadataDirectory:
    """A log without batches and with one snapshot, at whose end it starts."""
    return _open_alone(path, SourceKind.SNAPSHOT)


def _open_alone(path: str | Path, kind: SourceKind) -> MetadataDirectory:
    file = DiskFile.at(path)
    based = [(first_base_offset(file), file)] if kind is SourceKind.SEGMENT else []
    snapshots = [read_snapshot(file)] if kind is SourceKind.SNAPSHOT else []
    cluster_id = find_properties(Path(path).absolute().parent).cluster_id
    return log_of(based, snapshots, kind=kind, path=str(path), name=file.name, cluster_id=cluster_id)
