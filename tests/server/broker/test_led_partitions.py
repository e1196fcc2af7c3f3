"""What a broker that serves nobody does when it is elected."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from structlog.testing import capture_logs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.server.broker.led_partitions import LedPartitions
from tests.replica_manager.brokers import change, partition, started, topic, tp


class Broker:
    """A replica manager that reports its transitions."""

    def __init__(self, *records: Any) -> None:
        self.later: deque[Callable[[], None]] = deque()
        self.left: list[list[TopicPartition]] = []
        self.led_partitions = LedPartitions(self.later.append, lambda led: self.left.append(list(led)))
        self.me = started(topic())
        self.led_partitions.manager = self.me.manager
        for record in records:
            self.hear(record)

    def hear(self, *records: Any) -> None:
        for transition in self.me.hear(*records):
            self.led_partitions(transition)
        while self.later:
            self.later.popleft()()


def test_it_leaves_where_others_are_in_sync() -> None:
    broker = Broker(partition(leader=2, isr=(1, 2)))
    assert not broker.left
    broker.hear(change(leader=1))
    assert broker.left == [[tp()]]
    assert not broker.led_partitions.alone


def test_it_stays_and_says_so_where_it_is_alone() -> None:
    broker = Broker(partition(leader=2, isr=(1, 2)))
    with capture_logs() as said:
        broker.hear(change(leader=1, isr=(1,)))
        broker.hear(change(leader=1, isr=(1,)))
    assert not broker.left
    assert broker.led_partitions.alone == [tp()]
    (logged,) = [line for line in said if line["event"] == "unavailable"]
    assert (logged["log_level"], logged["partitions"]) == ("error", [str(tp())])


def test_it_stays_for_one_partition_although_another_could_be_led_elsewhere() -> None:
    broker = Broker(partition(0, leader=2, isr=(1, 2)), partition(1, leader=2, isr=(1, 2)))
    broker.hear(change(0, leader=1, isr=(1,)), change(1, leader=1))
    assert not broker.left
    broker.hear(change(0, leader=1, isr=(1, 2)))
    assert broker.left == [[tp(0), tp(1)]], "another replica is in sync again"
