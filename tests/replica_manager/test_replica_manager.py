"""The periodic tasks of a replica manager."""

from __future__ import annotations

import pytest

from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.partition.leader import append_records_to_leader
from kraftlake.replica_manager.replica_manager import IDLE_CHECK_MS
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from kraftlake.runtime.event_queue import EventQueue
from kraftlake.runtime.scheduler import Scheduler
from simulator.data_batches import batch
from tests.replica_manager.brokers import Broker, partition, started, topic, tp

LAG = ReplicaManagerConfig().replica_lag_time_max_ms
CHECKPOINT = ReplicaManagerConfig().replica_high_watermark_checkpoint_interval_ms


class Timed:
    """A broker whose scheduler a test drives."""

    def __init__(self, *records: object, **options: object) -> None:
        self.me: Broker = started(*records, scheduler=self._scheduler, **options)

    def _scheduler(self, clock) -> Scheduler:
        self.queue = EventQueue(clock, "scheduler")
        return Scheduler(self.queue)

    def pass_time(self, milliseconds: float) -> None:
        self.me.clock.advance(milliseconds)
        self.queue.run_ready()


def test_lagging_followers_are_searched_every_half_of_the_allowed_lag():
    timed = Timed(topic(), partition(leader=1))
    timed.me.manager.startup()
    timed.pass_time(0)
    append_records_to_leader(timed.me.partition(), batch(b"x"))
    timed.pass_time(LAG)
    assert timed.me.controller.proposals == []
    timed.pass_time(LAG / 2 - 1)
    assert timed.me.controller.proposals == []
    timed.pass_time(1)
    assert len(timed.me.controller.proposals) == 1


def test_high_watermarks_are_checkpointed_periodically_once_started():
    timed = Timed(topic(), partition(leader=1, replicas=(1,)))
    timed.me.manager.startup()
    append_records_to_leader(timed.me.partition(), batch(b"x"))
    timed.pass_time(10 * CHECKPOINT)
    assert timed.me.logs.checkpointed_high_watermark("d1", tp()) is None
    timed.me.manager.start_high_watermark_check_point_thread()
    timed.me.manager.start_high_watermark_check_point_thread()
    timed.pass_time(0)
    assert timed.me.logs.checkpointed_high_watermark("d1", tp()) == 1
    append_records_to_leader(timed.me.partition(), batch(b"x"))
    timed.pass_time(CHECKPOINT)
    assert timed.me.logs.checkpointed_high_watermark("d1", tp()) == 2
    assert timed.queue.size == 4


def test_producers_that_wrote_nothing_for_a_day_are_removed():
    config = ReplicaManagerConfig()
    timed = Timed(topic(), partition(leader=1, replicas=(1,)))
    timed.me.manager.startup()
    now = int(timed.me.clock.milliseconds())
    append_records_to_leader(timed.me.partition(), batch(b"x", producer=7, times=(now,)))
    producers = timed.me.partition().local_log.producers
    timed.pass_time(config.producer_id_expiration_ms - config.producer_id_expiration_check_interval_ms)
    assert len(producers) == 1
    timed.pass_time(2 * config.producer_id_expiration_check_interval_ms)
    assert len(producers) == 0


def test_idle_log_directory_fetchers_end_at_the_next_check():
    timed = Timed(topic(), partition(leader=1), moving=True)
    timed.me.manager.startup()
    timed.pass_time(0)
    alter_replica_log_dirs(timed.me.manager, {tp(): "d2"})
    timed.me.manager.log_dir_fetchers.remove_fetcher_for_partitions([tp()])
    assert len(timed.me.manager.log_dir_fetchers.fetchers()) == 1
    timed.pass_time(IDLE_CHECK_MS)
    assert timed.me.manager.log_dir_fetchers.fetchers() == {}


def test_a_shutdown_ends_the_tasks_and_checkpoints_the_high_watermarks():
    timed = Timed(topic(), partition(leader=1, replicas=(1,)))
    timed.me.manager.startup()
    timed.me.manager.start_high_watermark_check_point_thread()
    append_records_to_leader(timed.me.partition(), batch(b"x"))
    timed.me.manager.shutdown()
    assert timed.queue.size == 0
    assert timed.me.logs.checkpointed_high_watermark("d1", tp()) == 1


def test_without_a_scheduler_its_owner_is_the_driver():
    with pytest.raises(AssertionError, match="driven by its owner"):
        started().manager.startup()
