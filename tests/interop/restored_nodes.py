"""Clients of real clusters that are restored: records written and read, also from each replica's own files."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from kraftlake.records.batch import read_batches
from kraftlake.runtime.errors import CorruptDataError
from tests.kafka_node import METADATA_LOG, KafkaNode

_TAKES_AT_MOST = 300.0  # seconds, on a busy machine

Record = tuple[int, int | None, bytes]
"""Partition, offset, value. Of a record that was acknowledged as one sent before, the producer gets no offset."""


def produced(bootstrap: str, topic: str, values: Iterable[bytes], partitions: int = 1) -> list[Record]:
    """Write values, one partition after the other in turn, and give those that were acknowledged by the whole ISR."""
    acked: list[Record] = []

    def done(error: Any, message: Any) -> None:
        assert error is None, error
        acked.append((message.partition(), message.offset(), message.value()))

    producer = Producer(
        {"bootstrap.servers": bootstrap, "acks": "all", "message.timeout.ms": 120_000, "linger.ms": 5, "log_level": 2}
    )
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % partitions, on_delivery=done)
    assert producer.flush(_TAKES_AT_MOST) == 0
    return acked


def consumed(bootstrap: str, topic: str, wanted: Iterable[Record], partitions: int = 1) -> set[Record]:
    """What a consumer reads from the beginning until it has seen all records that are wanted."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 2})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: set[Record] = set()
    missing = set(wanted)
    deadline = time.monotonic() + _TAKES_AT_MOST
    while missing:
        assert time.monotonic() < deadline, f"{len(missing)} records are missing: {[*missing][:3]}"
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            partition, value = message.partition(), message.value()
            wherever: Record = (partition, None, value)
            found |= {(partition, message.offset(), value)} | ({wherever} & missing)
            missing -= {(partition, message.offset(), value), wherever}
    consumer.close()
    return found


def put_in_place(restored: Path, node: KafkaNode) -> None:
    """Replace a node's metadata log by the restored one; the rest of its log directory stays."""
    assert (restored / str(node.node_id) / "meta.properties").exists()
    shutil.rmtree(node.metadata_directory, ignore_errors=True)
    node.log_directory.mkdir(exist_ok=True)
    for path in (restored / str(node.node_id)).iterdir():
        if path.name == METADATA_LOG:
            shutil.copytree(path, node.metadata_directory)
        else:
            shutil.copy(path, node.log_directory)


def on_disk(node: KafkaNode, topic: str, partition: int) -> list[Record]:
    """The records in a replica's own files, up to the first batch that is not whole."""
    found: list[Record] = []
    for segment in sorted((node.log_directory / f"{topic}-{partition}").glob("*.log")):
        try:
            for batch in read_batches(segment.read_bytes(), file=segment.name):
                found += [(partition, batch.base_offset + at, value) for at, value in enumerate(batch.values)]
        except CorruptDataError:
            break
    return found
