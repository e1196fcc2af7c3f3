"""Requests of a session, recorded and then damaged: the nodes go on, with no fault of their own and little memory."""

from __future__ import annotations

import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.index import api_key_map

from kraftlake.records.varint import uvarint
from tests.server.broker.serving.recorded_cluster import PATIENCE, RecordedCluster, recorded_cluster
from tests.server.requests.test_dispatcher import api_versions
from tests.waiting import wait_for

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SEED = int(os.environ.get("KRAFTLAKE_SEED") or 0)
MUTANTS = 21_000 if LONG else 300
MOST_BYTES = 400 * 1024 * 1024
"""What the nodes may hold beyond what they held before: requests are held up to 256 MiB."""
_AT_A_TIME = 50
_LENGTH = struct.Struct(">i")
EXTREMES = (
    *(struct.pack(">i", number) for number in (-1, -2, -(2**31), 2**31 - 1, 1 << 24, 0)),
    *(struct.pack(">h", number) for number in (-1, -2, -(2**15), 2**15 - 1)),
    *(uvarint(number) for number in (0, 1, 127, 10_001, 2**28, 2**31 - 1, 2**32 - 1)),
    b"\x80\x00", b"\x80\x80\x80\x80\x00", b"\x80" * 6, b"\xff" * 12, b"\x00" * 16,
)  # fmt: skip
END_A_BROKER = {"broker_heartbeat", "broker_registration", "unregister_broker"}
"""Requests that may ask, in good form, that the broker shuts down or that another takes its place: none is sent."""


def mutants(frames: list[bytes], chance: random.Random) -> Iterator[bytes]:
    """Messages without end, each with the length before it, which sometimes is another one than that of the message."""
    kinds = (_flip, _cut, _insert, _repeat, _exchange, _replace, _splice, _rename)
    while True:
        body = bytearray(chance.choice(frames))
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            chance.choice(kinds)(body, frames, chance)
        if api_of(body) in END_A_BROKER:
            continue
        announced = len(body) + (chance.choice((-5, -1, 1, 4_000)) if chance.random() < 0.03 else 0)
        yield _LENGTH.pack(max(announced, 0)) + body


def api_of(frame: bytes | bytearray) -> str | None:
    """The name of the API that a request is of."""
    return api_key_map.get(int.from_bytes(frame[:2], "big"))


def _place(body: bytearray, chance: random.Random) -> slice:
    start = chance.randint(0, len(body))
    return slice(start, start + chance.randint(1, 40))


def _flip(body: bytearray, _: list[bytes], chance: random.Random) -> None:
    for _ in range(chance.randint(1, 4) if body else 0):
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)


def _cut(body: bytearray, _: list[bytes], chance: random.Random) -> None:
    place = _place(body, chance)
    del body[place.start : None if chance.random() < 0.5 else place.stop]


def _insert(body: bytearray, _: list[bytes], chance: random.Random) -> None:
    at = chance.randint(0, len(body))
    body[at:at] = chance.randbytes(chance.randint(1, 9))


def _repeat(body: bytearray, _: list[bytes], chance: random.Random) -> None:
    place = _place(body, chance)
    body[place.stop : place.stop] = body[place] * chance.choice((1, 2, 50))


def _exchange(body: bytearray, _: list[bytes], chance: random.Random) -> None:
    one, other = _place(body, chance), _place(body, chance)
    body[one], body[other] = body[other], body[one]


def _replace(body: bytearray, _: list[bytes], chance: random.Random) -> None:
    number = chance.choice(EXTREMES)
    at = chance.randint(0, len(body))
    body[at : at + len(number)] = number


def _splice(body: bytearray, frames: list[bytes], chance: random.Random) -> None:
    other = chance.choice(frames)
    body[chance.randint(0, len(body)) :] = other[chance.randint(0, len(other)) :]


def _rename(body: bytearray, _: list[bytes], chance: random.Random) -> None:
    """Another version, or another API."""
    at = chance.choice((1, 3))
    if len(body) > at:
        body[at] = chance.randrange(20 if at == 3 else 90)


def test_nodes_go_on_after_requests_that_were_recorded_and_damaged(tmp_path: Path) -> None:
    with recorded_cluster(tmp_path) as cluster:
        assert {*map(api_of, cluster.frames[1])} >= {
            "produce",
            "fetch",
            "metadata",
            "create_topics",
            "incremental_alter_configs",
            "delete_records",
        }
        before = cluster.memory()
        streams = {}
        for id_, frames in cluster.frames.items():
            assert frames, id_
            streams[id_] = mutants(sorted({*frames}), random.Random(SEED * 1_000 + id_))
        for _ in range(MUTANTS // _AT_A_TIME // len(streams)):
            for id_, stream in streams.items():
                send([next(stream) for _ in range(_AT_A_TIME)], cluster.ports[id_])
                assert answers(cluster.ports[id_]), f"node {id_} is silent, seed {SEED}"
            assert cluster.memory() - before < MOST_BYTES, f"seed {SEED}"
            assert cluster.faults() == [], f"seed {SEED}"
        check_whole(cluster)


def send(messages: list[bytes], port: int) -> None:
    """Send each over a connection of its own, and close all once they are sent; answers are not waited for."""
    connections = []
    try:
        for message in messages:
            connection = socket.create_connection(("127.0.0.1", port), PATIENCE)
            connections.append(connection)
            with suppress(ConnectionError):
                connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
    finally:
        for connection in connections:
            connection.close()


def answers(port: int) -> bool:
    """Whether a node says what it serves."""
    request = api_versions()
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(_LENGTH.pack(len(request)) + request)
        return len(connection.recv(1 << 16)) > 100


def check_whole(cluster: RecordedCluster) -> None:
    """Topics can be made and listed, so both nodes work, and the broker has its log directory."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{cluster.ports[1]}", "log_level": 0})
    for future in admin.create_topics([NewTopic("after", 1, 1)], operation_timeout=PATIENCE).values():
        future.result(PATIENCE)
    wait_for(lambda: "after" in admin.list_topics(timeout=PATIENCE).topics)
    assert "log_directory_failed" not in cluster.log.read_text()
    assert cluster.faults() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_seed_gives_the_same_mutants_again(seed: int) -> None:
    frames = [bytes(range(40)), bytes(60)]
    one, other = (mutants(frames, random.Random(seed)) for _ in range(2))
    assert [next(one) for _ in range(50)] == [next(other) for _ in range(50)]
