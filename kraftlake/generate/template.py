"""Encodes many records of one shape: the wire form of one record, with columns written into its gaps.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np

from kraftlake.records.schema import Message
from kraftlake.records.serde import encode_value, record_type
from kraftlake.records.uuid import Uuid

_LOW, _HIGH = 0x00, 0x7F

Gap: TypeAlias = tuple[str, int]
"""Type and length of a field: ("int32", 0) is a number, ("int32", 3) a list of three, ("uuid", n) likewise,
("int64", 0) a long, ("text", 12) a string of twelve ASCII characters."""


@attrs.frozen(kw_only=True)
class RecordKind:
    """Type name, api key and version of a record, as in the columns of the log."""

    name: str
    api_key: int
    version: int

    @classmethod
    def of(cls, message: type[Message], version: int) -> RecordKind:
        """The kind of a message at a version."""
        return cls(name=record_type(False, message.API_KEY, version), api_key=message.API_KEY, version=version)


class RecordTemplate:
    """Records of one class and version that differ only in fields of fixed size, the gaps.

    The place of a field is found by encoding the record twice, with two values that differ in every byte, so that only
    the codec knows the wire form.
    """

    def __init__(
        self, message: type[Message], version: int, gaps: Mapping[str, Gap], fixed: Mapping[str, Any] | None = None
    ) -> None:
        self.kind = RecordKind.of(message, version)
        low = {name: _value(gap, _LOW) for name, gap in gaps.items()} | dict(fixed or {})
        plain = _encoded(message, version, low)
        self._plain = plain
        self._places: dict[str, slice] = {}
        for name, gap in gaps.items():
            other = _encoded(message, version, low | {name: _value(gap, _HIGH)})
            places = np.flatnonzero(plain != other)
            assert len(places) == np.ptp(places) + 1, "a field lies in one piece"
            self._places[name] = slice(int(places[0]), int(places[-1]) + 1)

    @property
    def size(self) -> int:
        """The size of each record's value in bytes."""
        return len(self._plain)

    def fill(self, count: int, columns: Mapping[str, Any]) -> Any:
        """uint8[count, size]: a record's value in each row. Columns are results of `big_endian`, or uint8 matrices."""
        assert columns.keys() == self._places.keys(), "each gap needs a column, and no other"
        out = np.empty((count, self.size), np.uint8)
        out[:] = self._plain
        for name, place in self._places.items():
            out[:, place] = columns[name]
        return out


def big_endian(values: Any) -> Any:
    """The uint8 matrix of the big-endian bytes of int32[n], int32[n, k] or int64[n]."""
    array = np.ascontiguousarray(values)
    wire = array.astype(array.dtype.newbyteorder(">"))
    return wire.reshape(len(wire), -1).view(np.uint8)


def _encoded(message: type[Message], version: int, fields: Mapping[str, Any]) -> Any:
    return np.frombuffer(encode_value(message(**fields), version), np.uint8)


def _value(gap: Gap, byte: int) -> Any:
    kind, count = gap
    if kind == "text":
        return ("a" if byte == _LOW else "b") * count
    if kind == "uuid":
        one: Any = Uuid(bytes([byte]) * 16)
    else:
        one = int.from_bytes(bytes([byte]) * (8 if kind == "int64" else 4), "big")
    return (one,) * count if count else one
