"""Clients that would use more than their quotas, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs
from confluent_kafka import Consumer, Producer, ThrottleEvent, TopicPartition

from tests.waiting import PATIENCE

RECORD = 9_900


@attrs.define
class Use:
    """What a client has moved, as times in seconds and bytes; and its throttle times in ms.

    Time begins with the first record: how long a client takes to connect does not count.
    """

    moved: list[tuple[float, int]] = attrs.field(factory=list)
    throttles: list[int] = attrs.field(factory=list)
    _made_at: float = attrs.field(init=False, factory=time.monotonic)
    _began_at: float | None = attrs.field(init=False, default=None)

    @property
    def seconds(self) -> float:
        """The time since the first record; -1 before it."""
        if self._began_at is None:
            assert time.monotonic() < self._made_at + PATIENCE, "nothing has moved"
            return -1
        return time.monotonic() - self._began_at

    def move(self, size: int) -> None:
        """Note bytes that have moved now."""
        if self._began_at is None:
            self._began_at = time.monotonic()
        self.moved.append((self.seconds, size))

    def rate(self, since: float, until: float) -> float:
        """Bytes a second between two times."""
        return sum(size for at, size in self.moved if since <= at < until) / (until - since)

    def count(self, event: ThrottleEvent) -> None:
        """Take a throttle time of an answer; librdkafka reports the end of it as 0."""
        self.throttles.append(round(event.throttle_time * 1_000))


Done = Callable[[Use], bool]
"""Whether a client has done enough."""


def after(seconds: float) -> Done:
    """Enough is what a client does within this time."""
    return lambda use: use.seconds >= seconds


def produce(bootstrap: str, client_id: str, topic: str, partition: int, *, done: Done, at_once: int = 2) -> Use:
    """What a producer does that is never short of records, and sends some `at_once`."""
    use = Use()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 50,
            "batch.size": (at_once + 1) * RECORD, "batch.num.messages": at_once,
            "max.in.flight": 1, "queue.buffering.max.messages": 100, "throttle_cb": use.count,
        }
    )  # fmt: skip

    def delivered(error: object, _: object) -> None:
        assert error is None
        use.move(RECORD)

    while not done(use):
        try:
            producer.produce(topic, b"x" * RECORD, partition=partition, on_delivery=delivered)
        except BufferError:
            producer.poll(0.02)
        producer.poll(0)
    producer.purge()
    return use


def fill(bootstrap: str, topic: str, partition: int, size: int) -> None:
    """Write batches of a record each."""
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": RECORD})
    for _ in range(size // RECORD):
        producer.produce(topic, b"x" * RECORD, partition=partition)
        producer.poll(0)
    assert producer.flush(PATIENCE) == 0


def consume(bootstrap: str, client_id: str, topic: str, partition: int, *, done: Done, at_once: int = 4) -> Use:
    """What a consumer does that reads a partition from its beginning, some records `at_once`."""
    use = Use()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap, "group.id": "g", "client.id": client_id, "throttle_cb": use.count,
            "enable.auto.commit": False, "fetch.max.bytes": at_once * RECORD,
            "max.partition.fetch.bytes": at_once * RECORD,
            "message.max.bytes": 3 * RECORD, "queued.min.messages": 1_000_000,
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, 0)])
    while not done(use):
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            use.move(len(message))
    consumer.close()
    return use
