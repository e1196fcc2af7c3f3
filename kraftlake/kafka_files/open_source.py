"""Opens any SOURCE that consists of Kafka's files."""

from __future__ import annotations

from pathlib import Path

from kraftlake.kafka_files.directory import MetadataDirectory, log_of, open_directory
from kraftlake.kafka_files.node.meta_properties import find_properties
from kraftlake.kafka_files.sniffing.sniffing import sniff
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.kafka_files.stored_file import DiskFile
from kraftlake.runtime.errors import NotASourceError


def open_kafka_files(path: str | Path, kind: SourceKind | None = None) -> MetadataDirectory:
    """Open a directory, a segment, a snapshot or an archive; a known `kind` skips the recognition.

    Raises NotASourceError for anything else, a lake among them.
    """
    kind = kind or sniff(path)
    match kind:
        case SourceKind.DIRECTORY:
            return open_directory(path)
        case SourceKind.SEGMENT | SourceKind.SNAPSHOT:
            return _open_file(path, kind)
        case SourceKind.ARCHIVE:
            from kraftlake.kafka_files.archives.archive import open_archive

            return open_archive(path)
        case SourceKind.LAKE:
            raise NotASourceError(f"{path} is a lake, not Kafka's own files")


def _open_file(path: str | Path, kind: SourceKind) -> MetadataDirectory:
    """A segment or a snapshot alone, identified by its content and not by its name, as a log of its own.

    A segment is the last one of that log, so its tail may be torn. A snapshot is a log without batches that starts at
    the snapshot's end.
    """
    file = DiskFile.at(path)
    cluster_id = find_properties(Path(path).absolute().parent).cluster_id
    return log_of([file], kind=kind, path=str(path), name=file.name, cluster_id=cluster_id)
