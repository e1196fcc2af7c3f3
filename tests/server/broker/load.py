"""Clients that write: all at once, in transactions, or until they are stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Self

from confluent_kafka import Producer

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from tests.interop.restored_nodes import Record
from tests.replica_manager.kafka_follower import PATIENCE


def text(number: int, size: int = 500) -> bytes:
    """A value that compresses somewhat, and differs from all others."""
    return b"%d " % number + bytes((number * 31 + at * at) % 251 for at in range(size))


def write(bootstrap: str, name: TopicPartition, count: int, *, first: int = 0, keys: int = 0, **options: Any) -> None:
    """Write values, all of them acknowledged; with `keys` under so many keys in turn."""
    faults: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5, "log_level": 2}
        | {option.replace("_", "."): value for option, value in options.items()}
    )
    for number in range(first, first + count):
        producer.produce(
            name.topic, b"value-%d-" % number + b"x" * 400 if keys else text(number), partition=name.partition,
            key=b"key-%d" % (number % keys) if keys else None,
            on_delivery=lambda fault, _: fault and faults.append(fault),
        )  # fmt: skip
        producer.poll(0)
    assert producer.flush(PATIENCE) == 0
    assert not faults, faults[:3]


def write_transactions(bootstrap: str, name: TopicPartition, count: int, *, id_: str) -> None:
    """Write transactions of fifty values; every third one is aborted, half of its values being in the log."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": id_, "linger.ms": 5, "batch.size": 8000, "log_level": 2}
    )
    producer.init_transactions(PATIENCE)
    for number in range(count):
        producer.begin_transaction()
        for at in range(50):
            producer.produce(name.topic, text(number * 50 + at), partition=name.partition)
            if at == 25:
                assert producer.flush(PATIENCE) == 0
        if number % 3 == 2:
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)


class Load:
    """Writes to partitions in turn with acks=all until it is closed; `acked` are the records that were acknowledged."""

    def __init__(
        self, bootstrap: str, names: Sequence[TopicPartition], *, per_second: int = 500, **options: Any
    ) -> None:
        self.acked: list[Record] = []
        self._faults: list[Any] = []
        self._names, self._pause = tuple(names), 10 / per_second
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5,
                "message.timeout.ms": int(PATIENCE * 1000), "retry.backoff.ms": 50, "retry.backoff.max.ms": 500,
                "topic.metadata.refresh.fast.interval.ms": 100, "log_level": 2,
            }
            | {option.replace("_", "."): value for option, value in options.items()}
        )  # fmt: skip
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        number = 0
        while not self._closing.wait(self._pause):
            for _ in range(10):
                name = self._names[number % len(self._names)]
                key, value = self._record(number)
                self._producer.produce(
                    name.topic, value, key=key, partition=name.partition, on_delivery=self._delivered
                )
                number += 1
            self._producer.poll(0)
            while len(self._producer) > 20_000 and not self._closing.is_set():
                self._producer.poll(0.1)

    def _record(self, number: int) -> tuple[bytes | None, bytes | None]:
        """A key and a value, either of which may be None."""
        return None, text(number, 200)

    def _delivered(self, fault: Any, message: Any) -> None:
        if fault is not None:
            self._faults.append(fault)
        else:
            self.acked.append((message.partition(), message.offset(), message.value()))

    def await_more(self, count: int = 100) -> None:
        """Wait until so many more records are acknowledged."""
        deadline, wanted = time.monotonic() + PATIENCE, len(self.acked) + count
        while len(self.acked) < wanted:
            assert not self._faults, self._faults[:3]
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.05)

    def await_caught_up(self) -> None:
        """Wait until what was written while nothing could be acknowledged is acknowledged, too."""
        deadline = time.monotonic() + PATIENCE
        while not self.acked or len(self._producer) > 20:
            assert not self._faults, self._faults[:3]
            assert time.monotonic() < deadline, "what was written is not acknowledged"
            time.sleep(0.05)

    def close(self) -> None:
        """End, once all that was written is acknowledged."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE) == 0
        assert not self._faults, self._faults[:3]
