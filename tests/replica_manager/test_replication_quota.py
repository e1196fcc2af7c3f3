"""The rate limit of throttled replication."""

from __future__ import annotations

import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.replication_quota import ReplicationQuota, throttled_partitions
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import UsageError


def quota(rate: float | None = 100.0) -> tuple[ReplicationQuota, ManualClock]:
    clock = ManualClock(1_000)
    made = ReplicationQuota(clock)
    made.bytes_per_second = rate
    return made, clock


def test_only_named_partitions_are_throttled():
    made, _ = quota()
    made.throttle("some", [1])
    made.throttle("all", None)
    named = [made.is_throttled(TopicPartition(topic, 1)) for topic in ("some", "all", "none")]
    assert named == [True, True, False]
    assert not made.is_throttled(TopicPartition("some", 2))
    made.release("all")
    assert not made.is_throttled(TopicPartition("all", 1))


def test_a_quota_without_a_rate_is_never_exceeded():
    made, _ = quota(None)
    made.record(10**12)
    assert not made.is_exceeded()


def test_the_first_window_counts_as_a_whole_one():
    made, clock = quota()
    made.record(100)
    assert (made.rate(), made.is_exceeded()) == (100.0, False)
    clock.advance(1)
    made.record(1)
    assert made.is_exceeded()


def test_the_rate_falls_with_time_and_is_zero_after_all_windows():
    made, clock = quota()
    made.record(1_000)
    clock.advance(5_000)
    assert made.rate() == 200.0
    clock.advance(5_000)
    assert not made.is_exceeded()
    clock.advance(1_000)
    assert made.rate() == 0.0


def test_a_new_rate_applies_at_once():
    made, _ = quota()
    made.record(150)
    assert made.is_exceeded()
    made.bytes_per_second = 150
    assert not made.is_exceeded()


def test_throttled_replicas_are_named_by_partition_and_broker():
    assert throttled_partitions("0:1, 1:2,2:1", 1) == {0, 2}
    assert throttled_partitions("", 1) == frozenset()
    assert throttled_partitions("*", 1) is None


@pytest.mark.parametrize("value", ["0", "a:b", "0:1:2", "0:1,,"])
def test_any_other_value_of_throttled_replicas_is_refused(value):
    with pytest.raises(UsageError, match="partition:broker"):
        throttled_partitions(value, 1)
