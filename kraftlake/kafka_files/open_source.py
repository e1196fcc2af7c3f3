"""Opens any SOURCE that consists of Kafka's files."""

from __future__ import annotations

from pathlib import Path

from kraftlake.kafka_files.directory import MetadataDirectory, open_directory
from kraftlake.kafka_files.single_file import open_segment, open_snapshot
from kraftlake.kafka_files.sniffing.sniffing import sniff
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.runtime.errors import NotASourceError


def open_kafka_files(path: str | Path, kind: SourceKind | None = None) -> MetadataDirectory:
    """Open a directory, a segment, a snapshot or an archive; a known `kind` skips the recognition.

    Raises NotASourceError for anything else, a lake among them.
    """
    kind = kind or sniff(path)
    match kind:
        case SourceKind.DIRECTORY:
            return open_directory(path)
        case SourceKind.SEGMENT:
            return open_segment(path)
        case SourceKind.SNAPSHOT:
            return open_snapshot(path)
        case SourceKind.ARCHIVE:
            from kraftlake.kafka_files.archives.archive import open_archive

            return open_archive(path)
        case SourceKind.LAKE:
            raise NotASourceError(f"{path} is a lake, not Kafka's own files")
