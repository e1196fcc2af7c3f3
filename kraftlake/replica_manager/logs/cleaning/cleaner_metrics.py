"""The metrics of the cleaner of a broker's logs, by Kafka's names."""

from __future__ import annotations

from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.logs.cleaning.log_cleaner import LogCleaner
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
    for name, description, read in (
        ("cleaner-recopy-percent", "The part of the bytes that the last cleaning has left.",
         lambda: int(100 * cleaner.last_cleaning.recopied)),
        ("max-clean-time-secs", "The time of the last cleaning.", lambda: cleaner.last_cleaning.ms // 1_000),
        ("max-buffer-utilization-percent", "The part of the memory for keys that the last cleaning has used.",
         lambda: int(100 * cleaner.last_cleaning.map_utilization)),
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
