"""Requests that the active controller answers, by way of a broker."""

from __future__ import annotations

import io
import queue
from datetime import timedelta
from pathlib import Path

from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.primitive import i32Timedelta

from kraftlake.protocol import REQUEST_HEADER
from kraftlake.server.requests.dispatcher import Peer
from kraftlake.server.requests.messages import LONGEST_READ, response_in
from tests.server.broker.lake_cluster import lake_cluster

PEER = Peer(listener="PLAINTEXT", host="127.0.0.1")
LONG = 30_000


def frame_of(size: int) -> bytes:
    """A request of so many bytes that creates topics whose names are too long."""

    def made(lengths: list[int]) -> bytes:
        topics = tuple(
            create_topics.CreatableTopic(
                name="x" * length, num_partitions=1, replication_factor=1, assignments=(), configs=()
            )
            for length in lengths
        )
        frame = io.BytesIO()
        frame.write(REQUEST_HEADER.pack(19, 7, 1, -1) + b"\0")
        timeout = i32Timedelta.parse(timedelta(seconds=1))
        asked = create_topics.CreateTopicsRequest(topics=topics, timeout=timeout, validate_only=True)
        entity_writer(create_topics.CreateTopicsRequest)(frame, asked)
        return frame.getvalue()

    lengths = [LONG + number for number in range(size // (LONG + 100))]
    return made([*lengths, LONG - 1 - len(made([*lengths, LONG - 1])) + size])


def test_the_longest_request_that_a_broker_takes_fits_into_an_envelope(tmp_path: Path) -> None:
    """Else it would be sent again and again, and all that come behind it would wait."""
    frame = frame_of(LONGEST_READ)
    assert len(frame) == LONGEST_READ
    answers: queue.Queue[bytes | None] = queue.Queue()
    with lake_cluster(tmp_path, brokers=(1,)) as cluster:
        server = cluster.members[1].server
        cluster.wait_for(lambda: server.dispatcher is not None)
        server._handle(frame, PEER, answers.put)
        answer = answers.get(timeout=20)
    assert answer is not None
    assert {one.error_code for one in response_in(frame, answer).topics} == {ErrorCode.invalid_topic_exception}
