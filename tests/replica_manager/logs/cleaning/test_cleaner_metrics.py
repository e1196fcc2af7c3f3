"""Kafka's metrics of a cleaner."""

from __future__ import annotations

from pathlib import Path

import attrs

from kraftlake.replica_manager.logs.cleaning.cleaner_metrics import register_cleaner
from kraftlake.runtime.metrics import MetricsRegistry
from tests.replica_manager.logs.cleaning.cleaned import COMPACTED
from tests.replica_manager.logs.cleaning.test_log_cleaner import CLOCK, clean_all, cleaner_of, log_of, managed


def test_the_metrics_follow_the_cleaner(tmp_path: Path) -> None:
    manager = managed(tmp_path, 2)
    broken, sound = (log_of(manager, topic, 20) for topic in ("broken", "sound"))
    cleaner = cleaner_of(manager)
    registry = MetricsRegistry()
    register_cleaner(registry, cleaner)

    def of(name: str) -> float:
        return registry.value(f"kafka.log:type={name}")

    def of_directory(name: str, directory: str) -> float:
        return of(f"LogCleanerManager,name={name},logDirectory={directory}")

    file = Path(broken.segments[0].path(".log"))
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    dirty = {log: sum(segment.size for segment in log.segments[:-1]) for log in (broken, sound)}
    clean_all(cleaner)
    left = sum(segment.size for segment in sound.segments[:-1])
    for directory in manager.directories:
        holds = directory == broken.directory
        assert of_directory("uncleanable-partitions-count", directory) == holds
        assert of_directory("uncleanable-bytes", directory) == holds * dirty[broken]
    assert of("LogCleanerManager,name=max-dirty-percent") == 0
    assert of("LogCleanerManager,name=time-since-last-run-ms") == 0
    CLOCK.advance(7)
    assert of("LogCleanerManager,name=time-since-last-run-ms") == 7
    assert of("LogCleaner,name=cleaner-recopy-percent") == 100 * left // dirty[sound]
    assert of("LogCleaner,name=max-clean-time-secs") == 0
    assert of("LogCleaner,name=max-buffer-utilization-percent") == 0
    assert of("LogCleaner,name=max-compaction-delay-secs") == 0
    assert of("LogCleaner,name=DeadThreadCount") == 0
    manager.abandon()


def test_the_delay_is_that_of_the_last_look_which_found_a_log(tmp_path: Path) -> None:
    manager = managed(tmp_path)
    log = log_of(manager, "a", 20)
    log.update_config(attrs.evolve(COMPACTED, max_compaction_lag_ms=2_000, min_cleanable_dirty_ratio=1.0))
    cleaner = cleaner_of(manager)
    registry = MetricsRegistry()
    register_cleaner(registry, cleaner)
    late_s = (CLOCK.milliseconds() - 2_000 - 1_000) // 1_000  # the first record is of the time 1,000
    assert late_s > 0
    clean_all(cleaner)
    assert registry.value("kafka.log:type=LogCleaner,name=max-compaction-delay-secs") == late_s
    manager.abandon()
