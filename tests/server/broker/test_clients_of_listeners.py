"""Kafka's clients at each kind of listener: librdkafka, kafka-python, aiokafka and Java's write and read by assignment.

Those of Java take a JVM each; `make test` has them at one listener.
"""

from __future__ import annotations

import asyncio
import gc
import os
import ssl
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import aiokafka
import attrs
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.at_least_one import at_least_one
from tests.interop.kafka_tools import KafkaTools
from tests.server.broker.secured_cluster import USER, Secured, Way, secured_cluster
from tests.waiting import PATIENCE, wait_for

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its files by an old function
    import kafka

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
VALUES = [f"value {number}".encode() for number in range(5)]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_cluster(tmp_path_factory.mktemp("secured")) as made:
        yield made


def topic(secured: Secured, name: str) -> str:
    """A new topic of one partition."""
    admin = AdminClient(secured.way("PLAINTEXT").of_librdkafka())
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE)
    secured.cluster.wait_for(lambda: secured.cluster.members[1].server.broker.cache.contains(name))
    return name


def named(client: str, way: Way) -> str:
    return f"{client}-{way.listener}-{way.mechanism}"


def by_librdkafka(way: Way, name: str) -> list[bytes]:
    """Write the values, and read what is there."""
    producer = Producer({**way.of_librdkafka(), "message.timeout.ms": 60_000})
    for value in VALUES:
        producer.produce(name, value)
    assert producer.flush(PATIENCE) == 0
    consumer = Consumer({**way.of_librdkafka(), "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, 0, 0)])
    found = consumer.consume(len(VALUES), timeout=PATIENCE)
    consumer.close()
    return [message.value() for message in found]


def of_python(way: Way) -> dict[str, object]:
    """The configuration of kafka-python, and but for the certificates of aiokafka."""
    found: dict[str, object] = {"bootstrap_servers": way.bootstrap, "security_protocol": way.protocol}
    if way.mechanism:
        found |= {
            "sasl_mechanism": way.mechanism, "sasl_plain_username": USER, "sasl_plain_password": way.password,
        }  # fmt: skip
    if "SSL" in way.protocol:
        context = ssl.create_default_context(cafile=way.authority)
        if way.certificate:
            context.load_cert_chain(way.certificate)
        found["ssl_context"] = context
    return found


def by_kafka_python(way: Way, name: str) -> list[bytes]:
    producer = kafka.KafkaProducer(**of_python(way))
    for value in VALUES:
        producer.send(name, value, partition=0)
    producer.flush(PATIENCE)
    producer.close()
    consumer = kafka.KafkaConsumer(**of_python(way), consumer_timeout_ms=PATIENCE * 1000, group_id=None)
    partition = kafka.TopicPartition(name, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found = [message.value for _, message in zip(VALUES, consumer, strict=False)]
    consumer.close()
    return found


async def by_aiokafka(way: Way, name: str) -> list[bytes]:
    producer = aiokafka.AIOKafkaProducer(**of_python(way))
    await producer.start()
    for value in VALUES:
        await producer.send_and_wait(name, value, partition=0)
    await producer.stop()
    consumer = aiokafka.AIOKafkaConsumer(**of_python(way), group_id=None)
    await consumer.start()
    partition = aiokafka.TopicPartition(name, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    found = [(await asyncio.wait_for(consumer.getone(), PATIENCE)).value for _ in VALUES]
    await consumer.stop()
    return found


def by_java(tools: KafkaTools, way: Way, name: str, folder: Path) -> list[bytes]:
    file = folder / f"{name}.properties"
    file.write_text(way.of_java())
    common = ("--bootstrap-server", way.bootstrap, "--topic", name, "--command-config", str(file))
    written = b"\n".join(VALUES) + b"\n"
    said = tools.run("org.apache.kafka.tools.ConsoleProducer", *common, stdin=written.decode())
    assert said.code == 0, said
    read = tools.run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer", *common, "--partition", "0", "--offset", "0",
        "--max-messages", len(VALUES),
    )  # fmt: skip
    assert read.code == 0, read
    return read.out.encode().splitlines()


def test_librdkafka_writes_and_reads_at_each_listener(secured: Secured) -> None:
    for way in at_least_one(secured.ways()):
        name = topic(secured, named("librdkafka", way))
        assert by_librdkafka(way, name) == VALUES, name


def test_kafka_python_writes_and_reads_at_each_listener(secured: Secured) -> None:
    ways = {way.bootstrap: way for way in secured.ways()}.values()
    for way in at_least_one(secured.ways() if LONG else ways):
        name = topic(secured, named("kafka-python", way))
        assert by_kafka_python(way, name) == VALUES, name


def test_aiokafka_writes_and_reads_at_each_listener(secured: Secured) -> None:
    for way in at_least_one(secured.ways()):
        name = topic(secured, named("aiokafka", way))
        assert asyncio.run(by_aiokafka(way, name)) == VALUES, name


@pytest.mark.spark
def test_java_writes_and_reads_at_each_listener(secured: Secured, tmp_path: Path) -> None:
    ways = secured.ways() if LONG else [secured.way("BOTH", "SCRAM-SHA-512")]
    with closing(KafkaTools()) as tools:
        for way in at_least_one(ways):
            name = topic(secured, named("java", way))
            assert by_java(tools, way, name, tmp_path) == VALUES, name


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_clients_say_that_the_password_is_wrong(secured: Secured) -> None:
    wrong = attrs.evolve(secured.way("BOTH", "SCRAM-SHA-256"), password="wrong")
    errors: list[str] = []
    admin = AdminClient({**wrong.of_librdkafka(), "log_level": 2, "error_cb": lambda fault: errors.append(fault.str())})
    with suppress(KafkaException):
        admin.list_topics(timeout=1)
    reason = "Authentication failed during authentication due to invalid credentials"
    wait_for(lambda: admin.poll(0.1) is not None and reason in "".join(errors), "the client says so")
    with pytest.raises(kafka.errors.KafkaError):
        kafka.KafkaConsumer(**of_python(wrong), group_id=None, api_version_auto_timeout_ms=3000)

    async def start() -> None:
        producer = aiokafka.AIOKafkaProducer(**of_python(wrong), request_timeout_ms=3000)
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(aiokafka.errors.KafkaError):
        asyncio.run(start())
    gc.collect()  # aiokafka may leave the transport of a login that failed to it, and not to a later test
