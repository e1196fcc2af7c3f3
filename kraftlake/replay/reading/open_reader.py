"""The readers of a metadata log, of Kafka's own files or of a lake, and the one for each kind of source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kraftlake.kafka_files.faults import unreadable
from kraftlake.kafka_files.sniffing.source_kind import SourceKind, has_lake_log
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import UsageError

if TYPE_CHECKING:
    from kraftlake.kafka_files.directory import MetadataDirectory
    from kraftlake.kafka_files.snapshots.snapshot import Snapshot
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.metadata_log.snapshots.snapshot_table import LakeSnapshot
    from kraftlake.records.batch_values import BatchValues


LogReader: TypeAlias = "MetadataDirectory | LakeReader"
"""A metadata log and the snapshots beside it. Offsets are Kafka's; `end_offset` is exclusive.

Both have `name` (for messages), `cluster_id` (None if unknown), `start_offset`, `end_offset`, `snapshots` (all of them,
by end offset) and `batches(from_offset, to_offset)`: the whole batches that hold any offset of the range, in order.
"""

SnapshotReader: TypeAlias = "Snapshot | LakeSnapshot"
"""A snapshot: the image after the offsets below `end_offset`, as records.

Both have the attributes that `Snapshot` documents; offsets inside of a snapshot count from 0. `size_in_bytes` is that
of the file as Kafka wrote it, 0 where there never was one. `damage()` is the reason why a snapshot must not be used,
None for a sound one.
"""


class LakeReader:
    """A lake as a source of a metadata log, at the version that it was opened at."""

    def __init__(self, log: MetadataLog) -> None:
        self.log = log

    @property
    def name(self) -> str:
        """The lake's folder."""
        return str(self.log.path)

    @property
    def cluster_id(self) -> str | None:
        """The cluster whose log the lake has."""
        return self.log.cluster_id

    @property
    def start_offset(self) -> int:
        """The first offset of the log."""
        return self.log.start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last one."""
        return self.log.end_offset

    @cached_property
    def snapshots(self) -> tuple[LakeSnapshot, ...]:
        """The snapshots that the lake holds."""
        return self.log.snapshots()

    def batches(self, from_offset: int = 0, to_offset: int | None = None) -> Iterator[RecordBatch]:
        """The whole batches that hold any offset in [from_offset, to_offset]."""
        return self.log.batches(from_offset, to_offset)

    def bulk_batches(self, from_offset: int, to_offset: int) -> Iterator[BatchValues | RecordBatch]:
        """The same as `batches`, many at once."""
        return self.log.bulk_batches(from_offset, to_offset)


def open_reader(path: str, node: int | None = None) -> tuple[LogReader, SourceKind]:
    """Open the source at `path` by its content; `-` is stdin. `node` selects one of several nodes' logs.

    Raises NotASourceError naming the actual content, UsageError for a node of a lake.
    """
    if is_lake(path):
        from kraftlake.metadata_log.log import MetadataLog

        if node is not None:
            raise UsageError(f"{path} is a lake, which has one log: no node's can be chosen.")
        return LakeReader(MetadataLog.open(path)), SourceKind.LAKE
    from kraftlake.kafka_files.open_source import open_kafka_files

    files = open_kafka_files(path, node=node)
    return files, files.kind


def is_lake(path: str) -> bool:
    """Whether a path or URI is that of a lake: a URI, of an object store or a file, always is.

    Raises NotASourceError for a path that can't be read.
    """
    return "://" in path or _is_lake(path)


def _is_lake(path: str) -> bool:
    try:
        return has_lake_log(path) or _was_begun(path)
    except (FileNotFoundError, NotADirectoryError):  # `sniff` says what is there instead
        return False
    except OSError as fault:
        raise unreadable(str(fault.filename or path), fault) from None


def _was_begun(path: str) -> bool:
    """Whether a folder holds at most the empty folder that the creation of a lake makes first."""
    return [entry.name for entry in Path(path).iterdir()] == ["log"] and not any(Path(path, "log").iterdir())
