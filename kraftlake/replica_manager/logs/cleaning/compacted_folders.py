"""The clean and the dirty part of compacted logs in log directories, without opening the logs.

Source: org.apache.kafka.storage.internals.log.LogCleanerManager (cleanableOffsets, maxCompactionDelay).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import attrs

from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.node.partition_files import parse_offsets
from kraftlake.records.batch_header import HEADER_SIZE, parse_header
from kraftlake.replica_manager.logs.cleaning.cleanable import delay_ms, is_due
from kraftlake.replica_manager.logs.disk.log_directory import CLEANED_TO
from kraftlake.replica_manager.logs.disk.log_segment import TIME_ENTRY, TIME_INDEX
from kraftlake.replica_manager.logs.log_config import COMPACT, LogConfig
from kraftlake.replica_manager.logs.partition_folder import PartitionFolder
from kraftlake.runtime.arguments import path_texts
from kraftlake.runtime.errors import CorruptDataError, UsageError

_SEGMENT: Final = re.compile(r"[0-9]{20}\.log")


@attrs.frozen(kw_only=True)
class DirtySegment:
    """A segment that was not cleaned and is no longer written to; times in epoch ms, None where no record has one."""

    size: int
    first_ms: int | None
    largest_ms: int | None


@attrs.frozen(kw_only=True)
class CompactedFolder:
    """A compacted log by its folder; `dirty` are its segments behind the last cleaning without the active one."""

    path: str
    config: LogConfig
    cleaned_to: int | None
    """The end of the last cleaning, None where none is known."""
    clean_bytes: int
    dirty: tuple[DirtySegment, ...]

    @property
    def dirty_bytes(self) -> int:
        """The bytes of the dirty segments."""
        return sum(segment.size for segment in self.dirty)

    @property
    def oldest_dirty_ms(self) -> int | None:
        """The time of the oldest record that may be dirty (epoch ms)."""
        return min((segment.first_ms for segment in self.dirty if segment.first_ms is not None), default=None)

    def to_json(self) -> dict[str, Any]:
        """The JSON of `kraftlake replay --json`."""
        return {
            "path": self.path,
            "cleanedTo": self.cleaned_to,
            "cleanBytes": self.clean_bytes,
            "dirtyBytes": self.dirty_bytes,
            "oldestDirtyTimestamp": self.oldest_dirty_ms,
        }

    def was_due(self, at_ms: int) -> bool:
        """Whether the cleaner should have cleaned what the log had at a time (epoch ms)."""
        newest = at_ms - max(self.config.min_compaction_lag_ms, 0)
        old = takewhile(lambda one: one.largest_ms is not None and one.largest_ms <= newest, self.dirty)
        cleanable, delay = sum(one.size for one in old), delay_ms(self.config, self.oldest_dirty_ms, at_ms)
        return is_due(self.config, self.clean_bytes, cleanable, delay)


def compacted_folders(image: MetadataImage, paths: Iterable[str | os.PathLike[str]]) -> Iterator[CompactedFolder]:
    """Yield the logs whose topics have `compact` in their cleanup.policy; the other defaults are Kafka's."""
    for path in map(Path, path_texts(paths)):
        cleaned = _cleaned(path)
        for folder in sorted(path.iterdir()):
            found = PartitionFolder.parse(folder.name)
            if found is None or found.mark or not folder.is_dir():
                continue
            name = found.topic_partition
            config = _config(image, name.topic)
            if COMPACT in config.cleanup_policy:
                yield _folder(folder, config, cleaned.get((name.topic, name.partition)))


def _config(image: MetadataImage, topic: str) -> LogConfig:
    try:
        return LogConfig().overridden(image.configs.config_map(ConfigResource(TOPIC_RESOURCE, topic)))
    except UsageError:
        return LogConfig()


def _cleaned(directory: Path) -> Mapping[tuple[str, int], int]:
    try:
        rows = parse_offsets((directory / CLEANED_TO).read_bytes())
    except (OSError, CorruptDataError):
        return {}
    return {(topic, partition): offset for topic, partition, offset in rows}


def _folder(folder: Path, config: LogConfig, cleaned_to: int | None) -> CompactedFolder:
    files = sorted(file for file in folder.iterdir() if _SEGMENT.fullmatch(file.name))
    bases = [int(file.stem) for file in files]
    start = bases[0] if bases and (cleaned_to is None or cleaned_to < bases[0]) else cleaned_to or 0
    ends = bases[1:]  # that of the active segment is left out
    clean = [file for file, base in zip(files, bases, strict=True) if base < start]
    dirty = [file for file, end in zip(files, ends, strict=False) if end > start]
    return CompactedFolder(
        path=str(folder), config=config, cleaned_to=cleaned_to,
        clean_bytes=sum(_size(file) for file in clean), dirty=tuple(_segment(file) for file in dirty),
    )  # fmt: skip


def _segment(file: Path) -> DirtySegment:
    first = _time(_read(file, 0, HEADER_SIZE))
    index = file.with_suffix(TIME_INDEX)
    entry = _read(index, max(0, _size(index) // TIME_ENTRY.size - 1) * TIME_ENTRY.size, TIME_ENTRY.size)
    largest = TIME_ENTRY.unpack(entry)[0] if len(entry) == TIME_ENTRY.size else -1
    return DirtySegment(size=_size(file), first_ms=first, largest_ms=largest if largest >= 0 else first)


def _time(data: bytes) -> int | None:
    header = parse_header(data)
    return None if header is None or header.max_timestamp <= 0 else header.max_timestamp


def _read(file: Path, position: int, size: int) -> bytes:
    try:
        with file.open("rb") as stream:
            stream.seek(position)
            return stream.read(size)
    except OSError:
        return b""


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
