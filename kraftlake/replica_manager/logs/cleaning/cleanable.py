"""Which part of a log can be cleaned, and how dirty the log is.

Source: org.apache.kafka.storage.internals.log.LogCleanerManager (cleanableOffsets, maxCompactionDelay,
calculateCleanableBytes) and LogToClean.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import attrs

from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.log_segment import LogSegment
from kraftlake.replica_manager.logs.log_config import LogConfig

_NEVER = (1 << 63) - 1


@attrs.frozen(kw_only=True)
class LogToClean:
    """A log and the part of it that can be cleaned: [first_dirty_offset, first_uncleanable_offset)."""

    log: DiskPartitionLog = attrs.field(repr=False)
    first_dirty_offset: int
    """The end of the clean part, in which no key is twice but in records that are newer than the last cleaning."""
    first_uncleanable_offset: int
    """The base offset of a segment: the active one, or the first with records above the last stable offset, or newer
    than min.compaction.lag.ms."""
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int
    """For how long dirty records have been older than max.compaction.lag.ms."""

    @property
    def cleanable_ratio(self) -> float:
        """The dirty part of the bytes that are clean or can be cleaned."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the log is dirty enough to be cleaned, or overdue."""
        return is_due(self.log.config, self.clean_bytes, self.cleanable_bytes, self.delay_ms)


def is_due(config: LogConfig, clean_bytes: int, cleanable_bytes: int, delay_ms: int) -> bool:
    """Whether a log with so many bytes is dirty enough to be cleaned, or overdue for so long."""
    least = 0 if delay_ms else config.min_cleanable_dirty_ratio
    return cleanable_bytes > 0 and cleanable_bytes / (clean_bytes + cleanable_bytes) > least


def delay_ms(config: LogConfig, oldest_ms: int | None, now_ms: int) -> int:
    """For how long the oldest dirty record (epoch ms, None for none) has been older than max.compaction.lag.ms."""
    return 0 if oldest_ms is None else max(now_ms - max(config.max_compaction_lag_ms, 0) - oldest_ms, 0)


def log_to_clean(log: DiskPartitionLog, cleaned_to: int | None, now_ms: int) -> LogToClean:
    """The part of a log to clean; `cleaned_to` is the end of the last cleaning, None if there was none."""
    dirty = first_dirty_offset(log, cleaned_to)
    inactive = segments_between(log.segments, dirty, log.active.base_offset)
    uncleanable = max(dirty, _first_uncleanable_offset(log, inactive, now_ms))
    active = log.active.base_offset
    end = active if uncleanable >= active else log.segments[log.segment_at(uncleanable)].base_offset
    return LogToClean(
        log=log,
        first_dirty_offset=dirty,
        first_uncleanable_offset=end,
        clean_bytes=sum(segment.size for segment in log.segments if segment.base_offset < dirty),
        cleanable_bytes=sum(segment.size for segment in segments_between(log.segments, min(dirty, end), end)),
        delay_ms=delay_ms(log.config, _oldest_ms(inactive), now_ms),
    )


def first_dirty_offset(log: DiskPartitionLog, cleaned_to: int | None) -> int:
    """The end of the last cleaning, if it is in the log; else the log's start: a log that was cut counts as dirty."""
    start = log.log_start_offset
    return start if cleaned_to is None or not start <= cleaned_to <= log.log_end_offset else cleaned_to


def segments_between(segments: Sequence[LogSegment], start: int, end: int) -> list[LogSegment]:
    """The segments from the one that contains `start` to the last one with a base offset below `end`."""
    bases = [segment.base_offset for segment in segments]
    first = max(0, bisect_left(bases, start + 1) - 1)
    return [] if start >= end else list(segments[first : bisect_left(bases, end)])


def _first_uncleanable_offset(log: DiskPartitionLog, inactive: Sequence[LogSegment], now_ms: int) -> int:
    lag = max(log.config.min_compaction_lag_ms, 0)
    newer = (segment.base_offset for segment in inactive if lag and log.age_of(segment) > now_ms - lag)
    return min(log.last_stable_offset, log.active.base_offset, next(newer, _NEVER))


def _oldest_ms(inactive: Sequence[LogSegment]) -> int | None:
    times = (segment.first_batch_timestamp for segment in inactive)
    return min((time for time in times if time is not None and time > 0), default=None)
