"""Throttled clients of a lake's broker and of a Kafka 4.4 with the same quotas, for a minute each."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from kraftlake.protocol.address import Address
from kraftlake.protocol.connection import Connection
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.requests.messages import request_type, response_in
from tests.interop.jars import kafka_jars
from tests.java import java_command
from tests.kafka_node import started_node
from tests.server.broker.lake_cluster import lake_cluster
from tests.server.broker.throttled_clients import Use, after, consume, fill, produce
from tests.server.requests.test_dispatcher import frame_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: two minutes and more"),
]
SECONDS = 60.0
RATES = {"producer_byte_rate": 300_000.0, "consumer_byte_rate": 200_000.0}


@contextmanager
def kafka(folder: Path) -> Iterator[str]:
    with started_node(folder) as node:
        yield node.bootstrap


@contextmanager
def ours(folder: Path) -> Iterator[str]:
    folder.mkdir()
    with lake_cluster(folder, brokers=(1,)) as cluster:
        yield cluster.brokers


def set_quotas(bootstrap: str) -> None:
    """Set the quotas of the client id `held` by a request to a broker."""
    kind = request_type("alter_client_quotas", 1)
    module = import_module(kind.__module__)
    entry = module.EntryData(
        entity=(module.EntityData(entity_type="client-id", entity_name="held"),),
        ops=tuple(module.OpData(key=key, value=value, remove=False) for key, value in RATES.items()),
    )
    request = frame_of(kind(entries=(entry,), validate_only=False))
    host, _, port = bootstrap.partition(":")
    with Connection(Address(host, int(port)), timeout=60, max_response_bytes=1 << 20) as connection:
        answer = response_in(request, connection.exchange(request, timeout=60))
    assert [one.error_code for one in answer.entries] == [ErrorCode.NONE]


def used(bootstrap: str) -> tuple[Use, Use]:
    """What a producer and a consumer do at the same time."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 2, 1)])["t"].result(60)
    fill(bootstrap, "t", 1, round(2 * SECONDS * RATES["consumer_byte_rate"]))
    set_quotas(bootstrap)
    with ThreadPoolExecutor(2) as pool:
        producing = pool.submit(produce, bootstrap, "held", "t", 0, done=after(SECONDS), at_once=15)
        consuming = pool.submit(consume, bootstrap, "held", "t", 1, done=after(SECONDS), at_once=15)
    return producing.result(), consuming.result()


def test_clients_are_throttled_for_as_long_as_by_kafka(tmp_path: Path) -> None:
    with kafka(tmp_path / "kafka") as bootstrap:
        theirs = used(bootstrap)
    with ours(tmp_path / "ours") as bootstrap:
        mine = used(bootstrap)
    throttled, rates = (
        [[figure(use) for use in uses] for uses in (theirs, mine)]
        for figure in (lambda use: sum(use.throttles), lambda use: use.rate(0, SECONDS))
    )
    print("of the producer and the consumer: throttled ms", throttled, "bytes a second", rates)
    assert throttled[1] == pytest.approx(throttled[0], rel=0.1)
    assert rates[1] == pytest.approx(rates[0], rel=0.1)


def seconds_of_java(bootstrap: str) -> float:
    """How long Kafka's own producer takes for thirty seconds' worth of its quota, ten of which it may send at once."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(60)
    set_quotas(bootstrap)
    jars = ":".join(map(str, kafka_jars().values()))
    size = 5_000
    words = (
        "--topic", "t", "--num-records", round(30 * RATES["producer_byte_rate"] / size), "--record-size", size,
        "--throughput", -1, "--producer-props", f"bootstrap.servers={bootstrap}", "client.id=held", "batch.size=100000",
        "linger.ms=50", "buffer.memory=500000",
    )  # fmt: skip
    command = [
        java_command(),
        "-Xmx256m",
        "-cp",
        jars,
        "org.apache.kafka.tools.ProducerPerformance",
        *words,
    ]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    found = re.fullmatch(r"(\d+) records sent, ([\d.]+) records/sec .* 99\.9th\.", done.stdout.splitlines()[-1])
    assert found is not None, done.stdout + done.stderr
    return int(found[1]) / float(found[2])


def test_javas_producer_takes_as_long_as_with_kafka(tmp_path: Path) -> None:
    with kafka(tmp_path / "kafka") as bootstrap:
        theirs = seconds_of_java(bootstrap)
    with ours(tmp_path / "ours") as bootstrap:
        mine = seconds_of_java(bootstrap)
    print(f"seconds of ProducerPerformance: Kafka {theirs:.1f}, ours {mine:.1f}")
    assert mine == pytest.approx(theirs, rel=0.1)
    assert mine > 18, "ten seconds of thirty are free"
