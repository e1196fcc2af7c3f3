"""Clients that would use more than their quotas, and what became of them."""

from __future__ import annotations

import time

import attrs
from confluent_kafka import Consumer, Producer, ThrottleEvent, TopicPartition

RECORD = 9_900


@attrs.define
class Use:
    """What a client has moved, as times in seconds since its start and bytes; and its throttle times in ms."""

    moved: list[tuple[float, int]] = attrs.field(factory=list)
    throttles: list[int] = attrs.field(factory=list)

    def rate(self, since: float, until: float) -> float:
        """Bytes a second between two times."""
        return sum(size for at, size in self.moved if since <= at < until) / (until - since)

    def count(self, event: ThrottleEvent) -> None:
        """Take a throttle time of an answer; librdkafka tells the end of it as 0."""
        self.throttles.append(round(event.throttle_time * 1_000))


def produce(bootstrap: str, client_id: str, topic: str, partition: int, *, seconds: float, at_once: int = 2) -> Use:
    """What a producer does that is never short of records, and sends some `at_once`."""
    use = Use()
    producer = Producer(
        {
            "bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 50,
            "batch.size": (at_once + 1) * RECORD, "batch.num.messages": at_once,
            "max.in.flight": 1, "queue.buffering.max.messages": 100, "throttle_cb": use.count,
        }
    )  # fmt: skip
    began = time.monotonic()

    def delivered(error: object, _: object) -> None:
        assert error is None
        use.moved.append((time.monotonic() - began, RECORD))

    while time.monotonic() - began < seconds:
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
    assert producer.flush(20) == 0


def consume(bootstrap: str, client_id: str, topic: str, partition: int, *, seconds: float, at_once: int = 4) -> Use:
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
    began = time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            use.moved.append((now, len(message)))
    consumer.close()
    return use
