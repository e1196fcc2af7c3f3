"""A client that writes to compacted topics, and what a reader has to find there."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from tests.server.broker.load import Load, text
from tests.waiting import PATIENCE

KeyedRecord = tuple[int, int, bytes, bytes | None]
"""Partition, offset, key and value."""
_TOMBSTONE = 5
"""Every so many-th record has no value."""


class KeyedLoad(Load):
    """Writes values and tombstones under so many keys; `records` are those that were acknowledged."""

    def __init__(
        self, bootstrap: str, names: Sequence[TopicPartition], *, keys: int, per_second: int = 500, **options: Any
    ) -> None:
        super().__init__(bootstrap, names, per_second=per_second, **options)
        self.records: list[KeyedRecord] = []
        self._keys = keys

    def _record(self, number: int) -> tuple[bytes | None, bytes | None]:
        return b"key-%d" % (number * 31 % self._keys), None if number % _TOMBSTONE == 0 else text(number, 200)

    def _delivered(self, fault: Any, message: Any) -> None:
        super()._delivered(fault, message)
        if fault is None:
            self.records.append((message.partition(), message.offset(), message.key(), message.value()))


def read_all(client: Mapping[str, str], topic: str, partitions: int) -> list[KeyedRecord]:
    """All records in the order in which they come, up to the ends of the partitions."""
    consumer = Consumer({**client, "group.id": "none", "enable.auto.commit": False})
    places = [Place(topic, number, 0) for number in range(partitions)]
    ends = {place.partition: consumer.get_watermark_offsets(place, timeout=PATIENCE)[1] for place in places}
    consumer.assign(places)
    found: list[KeyedRecord] = []
    read_to = dict.fromkeys(ends, 0)
    deadline = time.monotonic() + PATIENCE
    while read_to != ends and time.monotonic() < deadline:
        for message in consumer.consume(10_000, timeout=1.0):
            if message.error() is None:
                found.append((message.partition(), message.offset(), message.key(), message.value()))
                read_to[message.partition()] = message.offset() + 1
    consumer.close()
    assert read_to == ends, f"{topic} can be read up to {read_to} of {ends}"
    return found


def check_compacted(acked: Sequence[KeyedRecord], found: Sequence[KeyedRecord]) -> None:
    """What was found was acknowledged, and comes in order; nothing is missing but what has a later record of its key.

    delete.retention.ms has to be longer than the test: all tombstones are there, unless their key has a later record.
    """
    places = [record[:2] for record in found]
    for partition in {place[0] for place in places}:
        offsets = [offset for number, offset in places if number == partition]
        assert offsets == sorted({*offsets}), f"partition {partition} was not read in order"
    strange = {*found} - {*acked}
    assert not strange, f"{len(strange)} records were never acknowledged, such as {min(strange)[:3]}"
    latest: dict[tuple[int, bytes], int] = {}
    for partition, offset, key, _ in found:
        latest[partition, key] = max(offset, latest.get((partition, key), -1))
    kept = {*places}
    lost = [
        record for record in acked if record[:2] not in kept and latest.get((record[0], record[2]), -1) <= record[1]
    ]
    assert not lost, f"{len(lost)} of {len(acked)} acknowledged records are gone, such as {lost[0][:3]}"
