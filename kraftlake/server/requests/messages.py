"""Decoding of requests to a broker, and encoding of answers.

Source: org.apache.kafka.common.requests.RequestContext and ResponseHeader; the schemas are kio's.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import fields
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any, Final

from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.serial.errors import SerialError
from kio.static.constants import EntityType
from kio.static.primitive import i32Timedelta

from kraftlake.protocol.message_scan import MessageScan, end_of_message, read_message
from kraftlake.protocol.node_client import REQUEST_HEADER
from kraftlake.records.varint import MalformedError

CORRELATION: Final = struct.Struct(">i")
_MANY_ELEMENTS: Final = 100_000
UNREADABLE: Final = (SerialError, ValueError, TypeError, LookupError, OverflowError, struct.error, MalformedError)
"""Exceptions raised for bytes that are no request."""
AT_ONCE: Final = i32Timedelta.parse(timedelta(0))
"""The throttle time of an answer."""


def api_of(frame: bytes) -> str | None:
    """The name of a request's API; None for an unknown one."""
    return api_key_map.get(REQUEST_HEADER.unpack_from(frame)[0])


def request_in(frame: bytes) -> Any:
    """Decode a request into kio's class; None for an unknown version or API.

    Raises one of UNREADABLE for malformed bytes, and for a request beyond the limits of `MessageScan`.
    """
    return scanned_request_in(frame, scan_of(frame))


def scan_of(frame: bytes) -> MessageScan:
    """Scan a request; the scan is empty for an unknown version or API. Raises as `request_in`."""
    scan = MessageScan()
    request, position = _body_of(frame)
    if request is not None:
        end_of_message(request, frame, position, scan)
    return scan


def is_large(frame: bytes) -> bool:
    """Whether a request may have more than `_MANY_ELEMENTS` elements: such requests are handled one at a time.

    The elements of an Envelope are not counted: its length decides.
    """
    if len(frame) <= _MANY_ELEMENTS:  # an element takes a byte or more
        return False
    try:
        return api_of(frame) == "envelope" or scan_of(frame).elements > _MANY_ELEMENTS
    except UNREADABLE:
        return False


def scanned_request_in(frame: bytes, scan: MessageScan) -> Any:
    """Decode a request from its scan by `scan_of`; the same as `request_in`."""
    request, position = _body_of(frame)
    return None if request is None else scan.read(request, frame, position)


def _body_of(frame: bytes) -> tuple[Any, int]:
    """The type and the position of a request's body; None for an unknown version or API."""
    _, version, _, length = REQUEST_HEADER.unpack_from(frame)
    position = REQUEST_HEADER.size + max(length, 0)
    name = api_of(frame)
    if name is None or version not in versions_of(name):
        return None, position
    request = request_type(name, version)
    return request, _after_tags(frame, position) if request.__flexible__ else position


def response_in(frame: bytes, answer: bytes) -> Any:
    """Decode the answer to a known request into kio's class. Raises as `request_in`."""
    response = _response_of(frame)
    position = _after_tags(answer, CORRELATION.size) if response.__flexible__ else CORRELATION.size
    return read_message(response, answer, position)[0]


def encoded_answer(frame: bytes, response: Any) -> bytes:
    """Encode the answer to a request, without its length prefix."""
    _, _, correlation, _ = REQUEST_HEADER.unpack_from(frame)
    return encoded(correlation, response, flexible_header=response.__flexible__)


def _response_of(frame: bytes) -> Any:
    key, version, _, _ = REQUEST_HEADER.unpack_from(frame)
    return response_type(api_key_map[key], version)


@cache
def versions_of(name: str) -> range:
    """The known versions of an API."""
    known = schema_name_map[name]
    return range(min(known), max(known) + 1)


@cache
def request_type(name: str, version: int) -> Any:
    """kio's class of a request."""
    return _entity(name, version, EntityType.request)


@cache
def response_type(name: str, version: int) -> Any:
    """kio's class of a response."""
    return _entity(name, version, EntityType.response)


def _entity(name: str, version: int, kind: EntityType) -> Any:
    module, _, type_name = schema_name_map[name][version][kind].partition(":")  # type: ignore[index]
    return getattr(import_module(module), type_name)


@cache
def module_of(kind: Any) -> Any:
    """kio's module of a class."""
    return import_module(kind.__module__)


def _after_tags(frame: bytes, position: int) -> int:
    """Return the end of a header; none of its tagged fields is known."""
    return MessageScan().end_of_tags({}, frame, position)


def encoded(correlation: int, response: Any, *, flexible_header: bool) -> bytes:
    """Encode a response after its header."""
    buffer = io.BytesIO()
    buffer.write(CORRELATION.pack(correlation) + (b"\0" if flexible_header else b""))
    entity_writer(type(response))(buffer, response)
    return buffer.getvalue()


def encoded_request(body: Any, *, correlation: int = 0, client_id: bytes | None = None) -> bytes:
    """Encode a request, in kio's class, after its header."""
    buffer = io.BytesIO()
    size = -1 if client_id is None else len(client_id)
    buffer.write(REQUEST_HEADER.pack(body.__api_key__, body.__version__, correlation, size) + (client_id or b""))
    buffer.write(b"\0" if body.__flexible__ else b"")
    entity_writer(type(body))(buffer, body)
    return buffer.getvalue()


def of_version(kind: Any, **values: Any) -> Any:
    """Return an instance with the values that its version has."""
    names = _field_names(kind)
    return kind(**{name: value for name, value in values.items() if name in names})


@cache
def _field_names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def answered(frame: bytes, make: Callable[[Any, Any], Any]) -> bytes | None:
    """Encode the answer to a request, without its length prefix.

    `make` gets kio's module of the response, and the request. None for an unknown version or API, and if `make` returns
    None. Raises as `request_in`.
    """
    asked = request_in(frame)
    if asked is None:
        return None
    made = make(module_of(_response_of(frame)), asked)
    return None if made is None else encoded_answer(frame, made)
