"""A node on loopback that answers as a test says; kio reads the requests and writes the answers.

node = ScriptedNode({FETCH: 17})
node.answers[FETCH] = lambda module, request: module.FetchResponse(...)
with node.serving() as address: ...
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from kio.schema.api_versions.v3.response import ApiVersion, ApiVersionsResponse
from kio.serial import entity_reader
from kio.static.primitive import i16, i32Timedelta

from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from tests.protocol.fake_nodes import encoded, frame, receive_frame, serving

FETCH: Final = 1
LIST_OFFSETS: Final = 2
API_VERSIONS: Final = 18
EPOCH_ENDS: Final = 23
ALTER_PARTITION: Final = 56
DESCRIBE_CLUSTER: Final = 60
REGISTRATION: Final = 62
HEARTBEAT: Final = 63
ASSIGN_REPLICAS: Final = 73
NAMES: Final = {
    FETCH: "fetch", LIST_OFFSETS: "list_offsets", EPOCH_ENDS: "offset_for_leader_epoch",
    ALTER_PARTITION: "alter_partition", DESCRIBE_CLUSTER: "describe_cluster", REGISTRATION: "broker_registration",
    HEARTBEAT: "broker_heartbeat", ASSIGN_REPLICAS: "assign_replicas_to_dirs",
}  # fmt: skip
AT_ONCE: Final = i32Timedelta.parse(timedelta(0))


class ScriptedNode:
    """Keeps the requests; an answer of None ends the connection, and `spoil` gets each answer's frame.

    `newest` has the newest version of each API that the node offers; it offers all older ones.
    """

    def __init__(self, newest: Mapping[int, int]) -> None:
        self.versions = {API_VERSIONS: (0, 4)} | {key: (0, version) for key, version in newest.items()}
        self.answers: dict[int, Callable[[Any, Any], Any]] = {}
        self.requests: list[Any] = []
        self.connections = 0
        self.spoil: Callable[[bytes], bytes] = lambda data: data

    @contextmanager
    def serving(self) -> Iterator[Address]:
        with serving(self._talk) as address:
            yield address

    def _talk(self, connection: socket.socket) -> None:
        self.connections += 1
        while True:
            data = receive_frame(connection)
            api_key, version, correlation_id = struct.unpack(">hhi", data[:8])
            if api_key == API_VERSIONS:
                answer, tags = self._api_versions(), b""
            else:
                name = NAMES[api_key]
                kind = import_module(f"kio.schema.{name}.v{version}.request")
                request_type = getattr(kind, "".join(map(str.capitalize, name.split("_"))) + "Request")
                _, size = entity_reader(request_type.__header_schema__)(data, 0)
                request, end = entity_reader(request_type)(data, size)
                assert size + end == len(data), "nothing follows the request"
                self.requests.append(request)
                answer, tags = (
                    self.answers[api_key](import_module(f"kio.schema.{name}.v{version}.response"), request),
                    b"\0",
                )
            if answer is None:
                return
            connection.sendall(self.spoil(frame(struct.pack(">i", correlation_id) + tags + encoded(answer))))

    def _api_versions(self) -> ApiVersionsResponse:
        keys = [
            ApiVersion(api_key=i16(k), min_version=i16(a), max_version=i16(b)) for k, (a, b) in self.versions.items()
        ]
        return ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=tuple(keys), throttle_time=AT_ONCE)
