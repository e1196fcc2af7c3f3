"""Kafka's RPCs to a node, one after the other, for tests that stand in for brokers and Admin clients."""

from __future__ import annotations

import importlib
import io
import socket
import struct
from typing import Any

from kio.schema.sasl_authenticate.v2 import request as sasl
from kio.schema.sasl_handshake.v1 import request as handshake
from kio.serial import entity_reader, entity_writer

from tests.waiting import PATIENCE

_LENGTH = struct.Struct(">i")


class KafkaRpc:
    """One connection; `ask` takes a request of kio's schemas and gives its response.

    With `user` it is authenticated by SASL/PLAIN, the password being `USER-secret`.
    """

    def __init__(self, address: str, user: str | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self._count = 0
        if user is not None:
            assert self.ask(handshake.SaslHandshakeRequest(mechanism="PLAIN")).error_code == 0
            answer = self.ask(sasl.SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}-secret".encode()))
            assert answer.error_code == 0, answer.error_message

    def close(self) -> None:
        self._socket.close()

    def ask(self, request: Any) -> Any:
        self._count += 1
        cls = type(request)
        header = cls.__header_schema__(
            request_api_key=cls.__api_key__,
            request_api_version=cls.__version__,
            correlation_id=self._count,
            client_id="kraftlake-tests",
        )
        buffer = io.BytesIO()
        entity_writer(type(header))(buffer, header)
        entity_writer(cls)(buffer, request)
        answer = self._exchange(buffer.getvalue())
        module = importlib.import_module(cls.__module__.replace(".request", ".response"))
        response = getattr(module, cls.__name__.replace("Request", "Response"))
        _, size = entity_reader(response.__header_schema__)(answer, 0)
        return entity_reader(response)(answer, size)[0]

    def unregister_controller(self, controller_id: int) -> int:
        """The error code of an UnregisterController request, which kio has no schema of."""
        self._count += 1
        header = struct.pack(">hhih5sB", 94, 0, self._count, 5, b"tests", 0)
        answer = self._exchange(header + struct.pack(">iB", controller_id, 0))
        count, _, _, error = struct.unpack_from(">iBih", answer)
        assert count == self._count
        return int(error)

    def _exchange(self, payload: bytes) -> bytes:
        self._socket.sendall(_LENGTH.pack(len(payload)) + payload)
        (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            part = self._socket.recv(size - len(received))
            assert part, "the node closed the connection"
            received += part
        return received
