"""Clients of a cluster that write down what they do and see: producers, consumers, and who asks for ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from tests.replica_manager.kafka_follower import PATIENCE
from tests.server.broker.load import Load
from tests.server.history_checker import Append, End, History, Read

REFUSED = (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.TOPIC_AUTHORIZATION_FAILED)
"""The errors of a record that no broker has taken; any other error leaves that open."""


class RecordedLoad(Load):
    """A load of which each append is written down."""

    def __init__(self, bootstrap: str, names: Sequence[TopicPartition], history: History, **options: Any) -> None:
        super().__init__(bootstrap, names, **options)
        self._history = history
        self._name = f"{id(self):x}-".encode()
        self._began: dict[bytes, int] = {}

    def _record(self, number: int) -> tuple[bytes | None, bytes | None]:
        key, value = super()._record(number)
        value = self._name + (value or b"")
        self._began[value] = time.monotonic_ns()
        return key, value

    def _delivered(self, fault: Any, message: Any) -> None:
        outcome = "acknowledged" if fault is None else "refused" if fault.code() in REFUSED else "unknown"
        self._history.appends.append(
            Append(
                partition=message.partition(), value=message.value(), began=self._began.pop(message.value()),
                ended=time.monotonic_ns(), outcome=outcome, offset=message.offset() if fault is None else None,
            )
        )  # fmt: skip
        super()._delivered(fault, message)


class Readers:
    """Consumers of a topic from its beginning, and one that asks for ends, until it is closed."""

    def __init__(
        self, client: Mapping[str, str], topic: str, partitions: int, history: History, *, consumers: int = 2
    ) -> None:
        self._client, self._history = dict(client), history
        self._places = [Place(topic, number, 0) for number in range(partitions)]
        self._closing = threading.Event()
        runs: list[Callable[[], None]] = [self._ask_for_ends]
        runs += [lambda name=str(number): self._consume(name) for number in range(consumers)]  # type: ignore[misc]
        self._threads = [threading.Thread(target=run, daemon=True) for run in runs]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def read_to_the_end(self) -> None:
        """Read all partitions to their ends, by a consumer of its own: what it lacks is lost."""
        consumer = self._consumer()
        ends = {place.partition: consumer.get_watermark_offsets(place, timeout=PATIENCE)[1] for place in self._places}
        consumer.assign(self._places)
        read_to, deadline = dict.fromkeys(ends, 0), time.monotonic() + PATIENCE
        while read_to != ends and time.monotonic() < deadline:
            for one in self._poll(consumer, "last"):
                read_to[one.partition] = one.offset + 1
        consumer.close()
        assert read_to == ends, f"{self._places[0].topic} can be read up to {read_to} of {ends}"
        self._history.finished |= {*ends}

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                **self._client, "group.id": "none", "enable.auto.commit": False, "log_level": 2,
                "auto.offset.reset": "error", "topic.metadata.refresh.fast.interval.ms": 100,
            }
        )  # fmt: skip

    def _consume(self, name: str) -> None:
        consumer = self._consumer()
        consumer.assign(self._places)
        while not self._closing.is_set():
            self._poll(consumer, name)
        consumer.close()

    def _poll(self, consumer: Consumer, name: str) -> list[Read]:
        began = time.monotonic_ns()
        messages = consumer.consume(5_000, timeout=0.2)
        ended = time.monotonic_ns()
        read = partial(Read, consumer=name, began=began, ended=ended)
        found = [
            read(partition=one.partition(), offset=one.offset(), value=one.value())
            for one in messages
            if one.error() is None
        ]
        self._history.reads += found
        return found

    def _ask_for_ends(self) -> None:
        consumer = self._consumer()
        while not self._closing.wait(0.05):
            for place in self._places:
                began = time.monotonic_ns()
                with suppress(KafkaException):  # no leader, or one that does not know the end yet
                    end = consumer.get_watermark_offsets(place, timeout=2.0)[1]
                    self._history.ends.append(
                        End(partition=place.partition, offset=end, began=began, ended=time.monotonic_ns())
                    )
        consumer.close()
