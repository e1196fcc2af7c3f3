"""The cleaner of a broker's logs: which log is next, what comes of its cleaning, and how fast.

Source: org.apache.kafka.storage.internals.log.LogCleaner and LogCleanerManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from threading import RLock
from typing import Final

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.errors import KafkaStorageError
from kraftlake.replica_manager.logs.cleaning.cleanable import LogToClean, log_to_clean
from kraftlake.replica_manager.logs.cleaning.log_cleaning import CleaningAbortedError, LogCleaning
from kraftlake.replica_manager.logs.cleaning.offset_map import SLOT_SIZE, OffsetMap
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
from kraftlake.replica_manager.logs.log_config import COMPACT
from kraftlake.runtime.clock import Clock
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

_SECRET_BITS: Final = 64


@attrs.frozen(kw_only=True)
class CleanerConfig:
    """The settings log.cleaner.*, without those that topics have for themselves; times in ms, sizes in bytes."""

    threads: int = 1
    dedupe_buffer_size: int = 128 * 1024 * 1024
    """The memory for keys of all threads together."""
    io_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000


@attrs.frozen(kw_only=True)
class CleaningFigures:
    """The figures of a cleaning that has come to its end; sizes in bytes."""

    bytes_before: int = 0
    bytes_after: int = 0
    map_utilization: float = 0.0
    ms: int = 0


@attrs.define(eq=False, kw_only=True)
class LogCleaner:
    """Cleans the compacted logs of a manager, the dirtiest first; a log that can't be cleaned is set aside.

    Each of `config.threads` threads calls `clean_next` again and again.
    """

    manager: DiskLogManager
    clock: Clock
    random: Random
    config: CleanerConfig = attrs.field(factory=CleanerConfig)
    """May be replaced at any time; the next cleaning follows it."""
    uncleanable: dict[TopicPartition, str] = attrs.field(factory=dict, init=False)
    """Why logs are set aside, until they are deleted or the broker starts again."""
    uncleanable_bytes: dict[TopicPartition, int] = attrs.field(factory=dict, init=False)
    """The bytes of these logs that would be cleaned, at the last look; all where that can't be seen."""
    dirtiest_ratio: float = attrs.field(default=0.0, init=False)
    """The cleanable part of the dirtiest log at the last look."""
    last_run_ms: int = attrs.field(init=False)
    """The time of the last look, or of the start (epoch ms)."""
    last_delay_ms: int = attrs.field(default=0, init=False)
    """The longest delay of a log at the last look that found one due."""
    last_cleanings: dict[int, CleaningFigures] = attrs.field(factory=dict, init=False)
    """The last cleaning of each thread that has cleaned."""
    dead_threads: set[int] = attrs.field(factory=set, init=False)
    """The threads that a fault has ended."""
    _in_progress: set[TopicPartition] = attrs.field(factory=set, init=False)
    _lock: RLock = attrs.field(factory=RLock, init=False)
    """Held while the state is read or changed, before a replica's lock."""

    def __attrs_post_init__(self) -> None:
        self.last_run_ms = self.clock.milliseconds()

    def clean_next(self, thread: int = 0) -> Iterator[float] | None:
        """Begin to clean the log that is due and dirtiest, and that no other thread cleans; None if none is due.

        The iterator cleans it; it yields the seconds to wait before the next step, by which reads and writes of all
        threads keep the allowed rate. It raises nothing: what goes wrong sets the log aside, or is its directory's
        failure.
        """
        with self._lock:
            next_ = self._dirtiest()
            if next_ is None:
                return None
            self._in_progress.add(next_.log.topic_partition)
        return self._clean(next_, thread)

    def _dirtiest(self) -> LogToClean | None:
        now = self.last_run_ms = self.clock.milliseconds()
        logs = dict(self.manager.logs())
        self.uncleanable = {name: why for name, why in self.uncleanable.items() if name in logs}
        self.uncleanable_bytes = {name: self._dirty_bytes(logs[name], now) for name in self.uncleanable}
        left_out = self.uncleanable.keys() | self._in_progress
        looked_at = [self._to_clean(log, now) for name, log in logs.items() if name not in left_out]
        dirty = [found for found in looked_at if found is not None]
        due = [found for found in dirty if found.is_due]
        self.dirtiest_ratio = max((found.cleanable_ratio for found in dirty), default=0.0)
        if due:
            self.last_delay_ms = max(found.delay_ms for found in dirty)
        return max(due, key=lambda found: found.cleanable_ratio, default=None)

    def _to_clean(self, log: DiskPartitionLog, now_ms: int) -> LogToClean | None:
        """The part of a log to clean; None for a log that is not compacted, is empty, or can't be looked at."""
        name = log.topic_partition
        try:
            with self.manager.guard(name):
                if COMPACT not in log.config.cleanup_policy or not self.manager.has(log):
                    return None
                cleaned_to = self.manager.cleaned_to(log)
                found = log_to_clean(log, cleaned_to, now_ms)
                if cleaned_to is not None and found.first_dirty_offset != cleaned_to:
                    self.manager.note_cleaned(log, found.first_dirty_offset)
        except Exception as error:
            self._set_aside(log, error)
            return None
        return found if found.clean_bytes + found.cleanable_bytes else None

    def _dirty_bytes(self, log: DiskPartitionLog, now_ms: int) -> int:
        try:
            with self.manager.guard(log.topic_partition):
                return log_to_clean(log, self.manager.cleaned_to(log), now_ms).cleanable_bytes
        except Exception:
            return log.size

    def _clean(self, to_clean: LogToClean, thread: int) -> Iterator[float]:
        log, config = to_clean.log, self.config
        name, slots = log.topic_partition, config.dedupe_buffer_size // max(config.threads, 1) // SLOT_SIZE
        secret = self.random.getrandbits(_SECRET_BITS), self.random.getrandbits(_SECRET_BITS)
        cleaning = LogCleaning(
            to_clean=to_clean,
            offset_map=OffsetMap(slots, config.io_buffer_load_factor, secret),
            now_ms=self.clock.milliseconds(),
            guard=lambda: self.manager.guard(name),
            is_there=lambda: self.manager.has(log),
        )
        begun = self.clock.milliseconds()
        try:
            for size in cleaning.steps():
                yield size * len(self._in_progress) / config.io_max_bytes_per_second
            with self.manager.guard(name):
                cleaning.check()
                self.manager.note_cleaned(log, cleaning.cleaned_to)
        except CleaningAbortedError:
            _log.info("log_cleaning_aborted", partition=str(name))
        except KafkaStorageError:
            if self.manager.has(log):  # else its directory has failed, and the log with it
                yield config.backoff_ms / 1_000  # no descriptor is left now
        except Exception as error:
            self._set_aside(log, error)
        else:
            done = self.last_cleanings[thread] = CleaningFigures(
                bytes_before=cleaning.bytes_before, bytes_after=cleaning.bytes_after,
                map_utilization=cleaning.offset_map.utilization, ms=self.clock.milliseconds() - begun,
            )  # fmt: skip
            _log.info(
                "log_cleaned", partition=str(name), from_offset=to_clean.first_dirty_offset,
                to_offset=cleaning.cleaned_to, bytes_before=done.bytes_before, bytes_after=done.bytes_after,
                map_utilization=round(done.map_utilization, 3), ms=done.ms,
            )  # fmt: skip
        finally:
            self._in_progress.discard(name)

    def _set_aside(self, log: DiskPartitionLog, error: Exception) -> None:
        if isinstance(error, KafkaStorageError):
            return  # its directory has failed, and the log with it
        with self._lock:
            self.uncleanable[log.topic_partition] = str(error)
            self.uncleanable_bytes[log.topic_partition] = self._dirty_bytes(log, self.clock.milliseconds())
        _log.warning("log_is_uncleanable", partition=str(log.topic_partition), folder=log.folder, why=str(error))
