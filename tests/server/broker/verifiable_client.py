"""Clients as processes of their own, which print a JSON object a record; SIGTERM ends them in order.

    python -m tests.server.broker.verifiable_client produce|consume BOOTSTRAP TOPIC PARTITIONS

The producer is idempotent, and prints what is acknowledged; the consumer prints what it reads from the start on.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

_COMMON = {"topic.metadata.refresh.fast.interval.ms": 100, "reconnect.backoff.max.ms": 500, "log_level": 0}


def _say(message: Any) -> None:
    print(json.dumps([message.partition(), message.offset(), message.value().decode()]), flush=True)


def produce(bootstrap: str, topic: str, partitions: int, ended: threading.Event) -> None:
    """Write numbers, 500 a second, until it is to end."""
    producer = Producer(
        {
            **_COMMON, "bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5,
            "message.timeout.ms": 120_000, "retry.backoff.ms": 50, "retry.backoff.max.ms": 500,
        }
    )  # fmt: skip

    def delivered(fault: Any, message: Any) -> None:
        assert fault is None, fault
        _say(message)

    number = 0
    while not ended.wait(0.02):
        for _ in range(10):
            producer.produce(topic, b"ours-%d" % number, partition=number % partitions, on_delivery=delivered)
            number += 1
        producer.poll(0)
    assert producer.flush(120) == 0, "all is acknowledged"


def consume(bootstrap: str, topic: str, partitions: int, ended: threading.Event) -> None:
    """Read until it is to end."""
    consumer = Consumer(
        {**_COMMON, "bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False,
         "auto.offset.reset": "error"}
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
    while not ended.is_set():
        message = consumer.poll(0.2)
        if message is None:
            continue
        fault = message.error()
        assert fault is None or fault.retriable() or fault.code() < 0, fault  # librdkafka's own pass
        if fault is None:
            _say(message)
    consumer.close()


if __name__ == "__main__":
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    {"produce": produce, "consume": consume}[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]), ended)
