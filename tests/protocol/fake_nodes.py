"""Servers on loopback with scripted answers, one connection after the other."""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from kio.schema.api_versions.v3.response import ApiVersion, ApiVersionsResponse
from kio.schema.describe_cluster.v1.response import DescribeClusterBroker, DescribeClusterResponse
from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse, PartitionData, TopicData
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta, i64

from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode

Talk = Callable[[socket.socket], None]
CLUSTER_ID = "kraftlakeTestClusterAA"


@contextmanager
def serving(talk: Talk) -> Iterator[Address]:
    """A server that runs `talk` with each connection, in a thread of its own."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=speak, args=[connection], daemon=True).start()

        def speak(connection: socket.socket) -> None:
            with connection, suppress(OSError, EOFError):
                talk(connection)

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        yield Address("127.0.0.1", server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        acceptor.join()


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def receive_frame(connection: socket.socket) -> bytes:
    return receive(connection, struct.unpack(">i", receive(connection, 4))[0])


def frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def encoded(message: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


class FakeController:
    """A controller that answers the three questions; what it answers may be changed while it runs."""

    def __init__(self) -> None:
        self.quorum_error = ErrorCode.NONE
        self.cluster_error = ErrorCode.NONE
        self.leader_epoch = 4
        self.high_watermark = 7
        self.cluster_id = CLUSTER_ID
        self.leader: Address | None = None
        self.versions = {18: (0, 4), 55: (0, 1), 60: (0, 1)}
        self.connections = 0
        self.silent_apis: set[int] = set()
        self.shift = 0

    def __call__(self, connection: socket.socket) -> None:
        self.connections += 1
        while True:
            api_key, _, correlation_id = struct.unpack(">hhi", receive_frame(connection)[:8])
            if api_key in self.silent_apis:
                continue
            tags = b"" if api_key == 18 else b"\0"
            answer = {18: self._api_versions, 55: self._quorum, 60: self._cluster}[api_key]()
            connection.sendall(frame(struct.pack(">i", correlation_id + self.shift) + tags + encoded(answer)))

    def _api_versions(self) -> ApiVersionsResponse:
        keys = tuple(
            ApiVersion(api_key=i16(key), min_version=i16(low), max_version=i16(high))
            for key, (low, high) in self.versions.items()
        )
        return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=keys, throttle_time=i32Timedelta.parse(_zero()))

    def _cluster(self) -> DescribeClusterResponse:
        brokers: tuple[DescribeClusterBroker, ...] = ()
        if self.leader is not None:
            here = DescribeClusterBroker(broker_id=BrokerId(9), host=self.leader.host, port=i32(self.leader.port))
            brokers = (here,)
        return DescribeClusterResponse(
            throttle_time=i32Timedelta.parse(_zero()), error_code=self.cluster_error, cluster_id=self.cluster_id,
            controller_id=BrokerId(9 if brokers else -1), brokers=brokers,
        )  # fmt: skip

    def _quorum(self) -> DescribeQuorumResponse:
        partition = PartitionData(
            partition_index=i32(0), error_code=self.quorum_error,
            leader_id=BrokerId(9), leader_epoch=i32(self.leader_epoch),
            high_watermark=i64(self.high_watermark), current_voters=(), observers=(),
        )  # fmt: skip
        topic = TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(partition,))
        return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=(topic,))


def _zero() -> Any:
    from datetime import timedelta

    return timedelta(0)
