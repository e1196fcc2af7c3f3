"""Kafka's RPCs at a node, one after the other, for tests that stand in for brokers and for Admin clients."""

from __future__ import annotations

import importlib
import io
import socket
import struct
from typing import Any

from kio.serial import entity_reader, entity_writer

_LENGTH = struct.Struct(">i")


class KafkaRpc:
    """One connection; `ask` takes a request of kio's schemas and gives its response."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._count = 0

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
        payload = buffer.getvalue()
        self._socket.sendall(_LENGTH.pack(len(payload)) + payload)
        (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        answer = self._receive(size)
        module = importlib.import_module(cls.__module__.replace(".request", ".response"))
        response = getattr(module, cls.__name__.replace("Request", "Response"))
        _, size = entity_reader(response.__header_schema__)(answer, 0)
        return entity_reader(response)(answer, size)[0]

    def _receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            part = self._socket.recv(size - len(received))
            assert part, "the node closed the connection"
            received += part
        return received
