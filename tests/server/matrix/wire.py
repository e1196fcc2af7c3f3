"""Requests of any version to a node, from plain values, and what it answers: a response, or the connection's end."""

from __future__ import annotations

import datetime
import io
import socket
import struct
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import IntEnum
from importlib import import_module
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kraftlake.protocol.node_client import REQUEST_HEADER

CLOSED = "the connection is closed"
_LENGTH = struct.Struct(">i")
_PATIENCE = 120.0
_CLIENT = b"matrix"


def known_versions(api: str) -> range:
    """The versions of an API that kio has."""
    known = schema_name_map[api]
    return range(min(known), max(known) + 1)


def entity(api: str, version: int, kind: EntityType) -> Any:
    """kio's class of a request or a response."""
    module, _, name = schema_name_map[api][version][kind].partition(":")  # type: ignore[index]
    return getattr(import_module(module), name)


def made(kind: Any, values: Mapping[str, Any]) -> Any:
    """An instance of one of kio's classes, of plain values: milliseconds, numbers of errors, and mappings for classes.

    Values that the version has no field for are left out; fields without a value or a default are zero or empty.
    """
    taken = {}
    for field in fields(kind):
        if field.name in values:
            taken[field.name] = _converted(field.type, values[field.name])
        elif field.default is MISSING and field.default_factory is MISSING:
            taken[field.name] = _empty(field.type)
    return kind(**taken)


def _converted(kind: Any, value: Any) -> Any:
    if get_origin(kind) is tuple:
        return tuple(_converted(get_args(kind)[0], one) for one in value)
    if isinstance(kind, types.UnionType):
        inner = [one for one in get_args(kind) if one is not types.NoneType]
        return None if value is None else _converted(inner[0], value)
    if is_dataclass(kind):
        return made(kind, value)
    if isinstance(kind, type) and issubclass(kind, datetime.timedelta):
        return kind.parse(datetime.timedelta(milliseconds=value))  # type: ignore[attr-defined]
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return kind(value)
    return value


def _empty(kind: Any) -> Any:
    if get_origin(kind) is tuple:
        return ()
    if isinstance(kind, types.UnionType):
        return None
    if is_dataclass(kind):
        return made(kind, {})
    if issubclass(kind, datetime.timedelta | IntEnum):
        return _converted(kind, 0)
    if issubclass(kind, bool):
        return False
    for plain in (int, str, bytes):
        if issubclass(kind, plain):
            return plain()
    assert issubclass(kind, UUID), f"a field of type {kind} has no value"
    return UUID(int=0)


def frame_of(api: str, version: int, values: Mapping[str, Any], correlation: int = 7) -> bytes:
    """A request's frame, without the length before it."""
    kind = entity(api, version, EntityType.request)
    buffer = io.BytesIO()
    buffer.write(REQUEST_HEADER.pack(kind.__api_key__, version, correlation, len(_CLIENT)) + _CLIENT)
    if kind.__flexible__:
        buffer.write(b"\0")
    entity_writer(kind)(buffer, made(kind, values))
    return buffer.getvalue()


class Wire:
    """A connection to a node; `exchange` opens it again after the node has closed it."""

    def __init__(self, host: str, port: int) -> None:
        self._where = (host, port)
        self._socket: socket.socket | None = None

    def close(self) -> None:
        """Close it."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, frame: bytes) -> None:
        """Send a frame."""
        self.send_bytes(_LENGTH.pack(len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes that need not be a frame."""
        if self._socket is None:
            self._socket = socket.create_connection(self._where, timeout=_PATIENCE)
        self._socket.sendall(data)

    def receive(self) -> bytes | None:
        """The next frame; None where the node has closed the connection."""
        head = self._exactly(_LENGTH.size)
        body = None if head is None else self._exactly(*_LENGTH.unpack(head))
        if body is None:
            self.close()
        return body

    def exchange(self, frame: bytes) -> bytes | None:
        """Send a frame; returns the frame of its answer, None where the node has closed the connection instead."""
        try:
            self.send(frame)
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            return None
        return self.receive()

    def ask(self, api: str, version: int, values: Mapping[str, Any]) -> Any:
        """The answer to a request, as kio declares it, or `CLOSED`."""
        answer = self.exchange(frame_of(api, version, values))
        return CLOSED if answer is None else read_answer(api, version, answer)

    def _exactly(self, size: int) -> bytes | None:
        assert self._socket is not None, "a frame was sent"
        got = bytearray()
        while len(got) < size:
            try:
                part = self._socket.recv(size - len(got))
            except ConnectionResetError:
                part = b""
            except TimeoutError:
                self.close()
                raise
            if not part:
                return None
            got += part
        return bytes(got)


def read_answer(api: str, version: int, answer: bytes) -> Any:
    """A response as kio declares it."""
    kind = entity(api, version, EntityType.response)
    position = 4
    if kind.__flexible__ and api != "api_versions":
        assert answer[position] == 0, "no tagged fields in the header"
        position += 1
    response, size = entity_reader(kind)(answer, position)
    assert position + size == len(answer), f"{len(answer) - position - size} bytes are left"
    return response
