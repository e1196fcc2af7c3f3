"""The cleaner of a broker's logs: the dirtiest first, its checkpoint, and what can't be cleaned."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from random import Random

import attrs
import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.kafka_files.node.partition_files import parse_offsets
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.cleaning.log_cleaner import CleanerConfig, LogCleaner
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.log import without_logs
from tests.replica_manager.logs.cleaning.cleaned import COMPACTED, fill, records_of_log

CLOCK = ManualClock(10_000)


def managed(folder: Path, count: int = 1) -> DiskLogManager:
    directories = [str(folder / str(number)) for number in range(count)]
    manager = open_log_manager(
        directories, cluster_id="c", node_id=1, clock=CLOCK, defaults=COMPACTED, topic_configs=lambda _: {},
        on_failure=lambda *_: None,
    )  # fmt: skip
    manager.startup((), lambda *_: False)
    return manager


def log_of(manager: DiskLogManager, topic: str, batches: int) -> DiskPartitionLog:
    name = TopicPartition(topic, 0)
    log = manager.get_or_create_log(
        name, is_new=True, is_future=False, topic_id=Uuid.random(), target_directory_id=None
    )
    fill(log, count=batches)
    return log


def cleaner_of(manager: DiskLogManager, rate: float = float("inf")) -> LogCleaner:
    config = CleanerConfig(io_max_bytes_per_second=rate)
    return LogCleaner(manager=manager, clock=CLOCK, random=Random(1), config=config)


def clean_all(cleaner: LogCleaner) -> list[float]:
    waits = []
    with without_logs():
        while (steps := cleaner.clean_next()) is not None:
            waits += list(steps)
    return waits


def checkpoint(manager: DiskLogManager, directory: int = 0) -> dict[str, int]:
    file = Path(list(manager.directories)[directory]) / "cleaner-offset-checkpoint"
    return {topic: offset for topic, _, offset in parse_offsets(file.read_bytes())} if file.exists() else {}


def test_the_dirtiest_log_is_next_and_clean_ones_wait(tmp_path: Path) -> None:
    manager = managed(tmp_path)
    logs = {topic: log_of(manager, topic, 20) for topic in ("a", "b")}
    cleaner = cleaner_of(manager)
    clean_all(cleaner)
    assert checkpoint(manager) == {topic: log.active.base_offset for topic, log in logs.items()}
    for topic, batches in (("a", 12), ("b", 40)):
        fill(logs[topic], count=batches, seed=2)
    before = checkpoint(manager)
    with without_logs():
        assert len(list(cleaner.clean_next() or ())) > 0
    after = checkpoint(manager)
    assert after["b"] > before["b"]
    assert after["a"] == before["a"]
    clean_all(cleaner)
    assert cleaner.clean_next() is None
    assert 0 <= cleaner.dirtiest_ratio <= 0.01


def test_logs_that_are_not_compacted_or_not_dirty_enough_stay(tmp_path: Path) -> None:
    manager = managed(tmp_path)
    log = log_of(manager, "a", 20)
    held = records_of_log(log)
    for config in (
        attrs.evolve(COMPACTED, cleanup_policy=("delete",)), attrs.evolve(COMPACTED, min_cleanable_dirty_ratio=1.0),
        attrs.evolve(COMPACTED, min_compaction_lag_ms=1_000_000),
    ):  # fmt: skip
        log.update_config(config)
        assert cleaner_of(manager).clean_next() is None
    assert records_of_log(log) == held


def test_a_restart_goes_on_from_the_checkpoint_which_a_truncation_lowers(tmp_path: Path) -> None:
    manager = managed(tmp_path)
    log = log_of(manager, "a", 40)
    clean_all(cleaner_of(manager))
    manager.shutdown(1)
    manager = managed(tmp_path)
    log = manager.logs()[TopicPartition("a", 0)]
    assert manager.cleaned_to(log) == log.active.base_offset
    log.update_high_watermark(log.log_end_offset)
    assert cleaner_of(manager).clean_next() is None
    to = log.segments[1].base_offset
    log.truncate_to(to + 1)  # the whole segment is dirty then: it gets other records
    assert checkpoint(manager) == {"a": to}
    manager.delete_logs([log.topic_partition], lambda *_: None)
    assert checkpoint(manager) == {}
    manager.abandon()


def test_a_move_takes_the_checkpoint_along(tmp_path: Path) -> None:
    manager = managed(tmp_path, 2)
    log = log_of(manager, "a", 20)
    clean_all(cleaner_of(manager))
    here, there = sorted(manager.directories, key=lambda path: path != log.directory)
    at = list(manager.directories).index
    held = checkpoint(manager, at(here))
    manager.prefer_directory(log.topic_partition, there)
    assert log.topic_id is not None
    future = manager.get_or_create_log(
        log.topic_partition, is_new=False, is_future=True, topic_id=log.topic_id, target_directory_id=None
    )
    future.append_as_follower(b"".join(bytes(batch.data) for batch in log.batches), 0)
    manager.replace_current_with_future(log.topic_partition)
    assert (checkpoint(manager, at(here)), checkpoint(manager, at(there))) == ({}, held)
    manager.abandon()


def test_a_damaged_log_is_set_aside_with_its_reason_and_others_are_cleaned(tmp_path: Path) -> None:
    manager = managed(tmp_path)
    broken, sound = (log_of(manager, topic, 20) for topic in ("broken", "sound"))
    file = Path(broken.segments[0].path(".log"))
    data = bytearray(file.read_bytes())
    data[100] ^= 1
    file.write_bytes(data)
    cleaner = cleaner_of(manager)
    clean_all(cleaner)
    assert checkpoint(manager) == {"sound": sound.active.base_offset}
    assert list(cleaner.uncleanable) == [broken.topic_partition]
    assert "fails its checksum" in cleaner.uncleanable[broken.topic_partition]
    dirty = sum(segment.size for segment in broken.segments[:-1])
    assert cleaner.uncleanable_bytes == {broken.topic_partition: dirty}
    manager.delete_logs([broken.topic_partition], lambda *_: None)
    assert cleaner.clean_next() is None
    assert (cleaner.uncleanable, cleaner.uncleanable_bytes) == ({}, {})


def test_threads_clean_different_logs_with_one_rate_and_one_memory(tmp_path: Path) -> None:
    manager = managed(tmp_path)
    logs = [log_of(manager, topic, 20) for topic in ("a", "b")]
    cleaner, rate = cleaner_of(manager), 1_000.0
    cleaner.config = CleanerConfig(threads=2, dedupe_buffer_size=2 * 24 * 100, io_max_bytes_per_second=rate)
    with without_logs():
        first, second = cleaner.clean_next(0), cleaner.clean_next(1)
        assert first is not None
        assert second is not None
        assert cleaner.clean_next(2) is None
        waited = [wait for pair in zip_longest(first, second, fillvalue=0.0) for wait in pair]
    assert cleaner.last_cleanings.keys() == {0, 1}
    assert checkpoint(manager) == {log.topic_partition.topic: log.active.base_offset for log in logs}
    moved = sum(2 * done.bytes_before + done.bytes_after for done in cleaner.last_cleanings.values())
    assert moved / rate < sum(waited) <= 2 * moved / rate  # each waits for both, while there are two
    assert {done.map_utilization for done in cleaner.last_cleanings.values()} == {6 / 100}


@pytest.mark.parametrize(("rate", "waits"), [(float("inf"), False), (1_000.0, True)])
def test_reads_and_writes_keep_the_allowed_rate(tmp_path: Path, rate: float, waits: bool) -> None:
    manager = managed(tmp_path)
    log = log_of(manager, "a", 20)
    cleanable = sum(segment.size for segment in log.segments[:-1])
    waited = sum(clean_all(cleaner_of(manager, rate)))
    left = sum(segment.size for segment in log.segments[:-1])
    assert waited == pytest.approx((2 * cleanable + left) / rate if waits else 0)
