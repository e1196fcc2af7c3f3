"""The metrics of the cleaner of a broker's logs, by Kafka's names."""

from __future__ import annotations

from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.logs.cleaning.log_cleaner import CleaningFigures, LogCleaner
from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags

_GROUP: Final = "kafka.log"


def register_cleaner(registry: MetricsRegistry, cleaner: LogCleaner) -> None:
    """Register the metrics of a cleaner.

    Source: org.apache.kafka.storage.internals.log.LogCleaner and LogCleanerManager.
    """
    for name, description, read in (
        ("uncleanable-partitions-count", "Compacted logs that can't be cleaned and are set aside, by directory.",
         lambda: uncleanable_by_directory(cleaner, dict.fromkeys(cleaner.uncleanable, 1))),
        ("uncleanable-bytes", "The bytes of these logs that would be cleaned, by directory.",
         lambda: uncleanable_by_directory(cleaner, dict(cleaner.uncleanable_bytes))),
        ("max-dirty-percent", "The cleanable part of the dirtiest log at the last look.",
         lambda: int(100 * cleaner.dirtiest_ratio)),
        ("time-since-last-run-ms", "Since the cleaner has last looked for a log; it grows while one is cleaned.",
         lambda: cleaner.clock.milliseconds() - cleaner.last_run_ms),
    ):  # fmt: skip
        registry.gauge(MetricName(_GROUP, "LogCleanerManager", name), description, read)

    def last() -> list[CleaningFigures]:
        return list(cleaner.last_cleanings.values())

    for name, description, read in (
        ("cleaner-recopy-percent", "The part of the bytes that each thread's last cleaning has left.",
         lambda: 100 * sum(one.bytes_after for one in last()) // max(sum(one.bytes_before for one in last()), 1)),
        ("max-clean-time-secs", "The longest of the threads' last cleanings.",
         lambda: max((one.ms for one in last()), default=0) // 1_000),
        ("max-buffer-utilization-percent", "The part of a thread's memory for keys that a last cleaning has used.",
         lambda: int(100 * max((one.map_utilization for one in last()), default=0.0))),
        ("max-compaction-delay-secs",
         "For how long a log was older than max.compaction.lag.ms when a log was last chosen.",
         lambda: cleaner.last_delay_ms // 1_000),
        ("DeadThreadCount", "The threads that a fault has ended; a change of log.cleaner.* begins others.",
         lambda: len(cleaner.dead_threads)),
    ):  # fmt: skip
        registry.gauge(MetricName(_GROUP, "LogCleaner", name), description, read)


def uncleanable_by_directory(cleaner: LogCleaner, figures: dict[TopicPartition, int]) -> dict[Tags, int]:
    """The sums of the figures of some logs by the directory that they are in."""
    logs = cleaner.manager.logs()
    sums = dict.fromkeys(cleaner.manager.directories, 0)
    for name, figure in figures.items():
        if name in logs and logs[name].directory in sums:
            sums[logs[name].directory] += figure
    return {(("logDirectory", directory),): figure for directory, figure in sums.items()}
