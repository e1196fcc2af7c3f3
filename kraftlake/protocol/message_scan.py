"""Checks that a message fits into its bytes, and counts its elements and tagged fields, before kio reads it.

kio's reader allocates memory for the length that an array claims, and a claim beyond the available memory ends the
process. kio also accepts a null in place of an array that can't be null, and refuses unknown tagged fields, which newer
clients and nodes may send in any version (KIP-482): kio gets the message without them. A time that its classes can't
hold becomes the nearest that they can. Like kio and Kafka, the scan reads a known tagged field by its content, whatever
size is announced.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final

import attrs
from kio.serial import entity_reader
from kio.serial._introspect import EntityField, EntityTupleField, PrimitiveTupleField, classify_field, is_optional

from kraftlake.records.schema import LONGEST_STRING, MOST_TAGGED_FIELDS
from kraftlake.records.varint import MalformedError, read_uvarint, uvarint

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_SIZES: Final = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "timedelta_i32": 4, "int64": 8,
    "timedelta_i64": 8, "datetime_i64": 8, "float64": 8, "uuid": 16,
}  # fmt: skip
_LIMITS: Final = {"timedelta_i64": (-(10**15), 10**15), "datetime_i64": (0, 253_402_300_799_000)}
"""The times that kio can read, in ms: about 30,000 years, and moments until the end of the year 9999."""
_STRING: Final = "string"
MOST_ELEMENTS: Final = 1_000_000
"""The maximum number of elements of all arrays of a message and its tagged fields. Two bytes may be a topic, which
becomes an object, and another object in the answer: a hundred MiB of them would take ten GiB."""


@attrs.define
class MessageScan:
    """The number of a message's elements and tagged fields, and the parts that kio can't read.

    `elements` counts the elements of all arrays, each of which becomes an object, `tags` the tagged fields; a message
    with more than `most` of both together is refused before an object is made.
    """

    most: int = MOST_ELEMENTS
    elements: int = 0
    tags: int = 0
    _replaced: list[tuple[int, int, bytes]] = attrs.field(factory=list, init=False)
    """The bytes to replace for kio, and their replacements: a few for each section of tagged fields."""

    def add(self, count: int, left: int) -> None:
        """Count the elements of an array. Raises MalformedError beyond `most` or the remaining bytes."""
        if count > left:  # each element has at least a byte
            raise MalformedError(f"an array of {count} elements does not fit into {left} bytes")
        self.elements += count
        self._check_number()

    def tagged_fields(self, data: bytes, position: int) -> tuple[int, int]:
        """Count the tagged fields that follow; returns their number and the position of the first. Raises as `add`."""
        count, position = read_uvarint(data, position)
        if count > MOST_TAGGED_FIELDS:
            raise MalformedError(f"it has {count} tagged fields, and {MOST_TAGGED_FIELDS} is the most")
        left = len(data) - position
        if count > left:  # each has two bytes or more
            raise MalformedError(f"{count} tagged fields do not fit into {left} bytes")
        self.tags += count
        self._check_number()
        return count, position

    def _check_number(self) -> None:
        if self.elements + self.tags > self.most:
            raise MalformedError(f"it has more than {self.most} elements and tagged fields")

    def read(self, message: Any, data: bytes, position: int) -> Any:
        """Decode a message of kio's class whose end `end_of_message` found with this scan. Raises as kio's reader."""
        return entity_reader(message)(self._for_kio(data), position)[0]

    def _for_kio(self, data: bytes) -> bytes:
        """Return the data without unknown tagged fields, and with each null in kio's form."""
        parts: list[bytes] = []
        position = 0
        for begin, end, new in sorted(self._replaced):
            parts += data[position:begin], new
            position = end
        return b"".join((*parts, data[position:])) if parts else data

    def length(self, data: bytes, begin: int, *, flexible: bool, short: bool = False) -> tuple[int, int]:
        """Read a length, below 0 for null; returns it and the position after it.

        Without tagged fields, `short` lengths have two bytes.
        """
        if flexible:
            length, position = read_uvarint(data, begin)
            return length - 1, position
        number = _INT16 if short else _INT32
        (length,) = number.unpack_from(data, begin)
        if length < -1:  # any number below 0 is a null for Kafka, -1 alone for kio
            self._replaced.append((begin, begin + number.size, number.pack(-1)))
        return length, begin + number.size

    def time(self, data: bytes, begin: int, least: int, most: int) -> None:
        """Have kio read a time within limits, in ms. Raises struct.error if the data end before it does."""
        (ms,) = _INT64.unpack_from(data, begin)
        if not least <= ms <= most:
            self._replaced.append((begin, begin + _INT64.size, _INT64.pack(min(max(ms, least), most))))

    def end_of_tags(self, tagged: Mapping[int, _Plan], data: bytes, begin: int) -> int:
        """Return the position after the tagged fields at a position."""
        if data[begin] == 0:  # nearly every message has none
            return begin + 1
        count, position = self.tagged_fields(data, begin)
        end_of_count, unknown, begin_of_unknown = position, 0, position
        for _ in range(count):
            begin_of_tag = position
            tag, position = read_uvarint(data, position)
            size, position = read_uvarint(data, position)
            if tag not in tagged:
                unknown += 1
                position += size
                continue
            if begin_of_unknown < begin_of_tag:
                self._replaced.append((begin_of_unknown, begin_of_tag, b""))
            position = begin_of_unknown = tagged[tag].end(data, position, self, flexible=True)
        if begin_of_unknown < position:
            self._replaced.append((begin_of_unknown, position, b""))
        if unknown:
            self._replaced.append((begin, end_of_count, uvarint(count - unknown)))
        return position


class _Plan:
    """Skips one field: by its size, its length, its nested message, or as an array of these."""

    def __init__(self, field: Any) -> None:
        found = classify_field(field)
        self.is_array = isinstance(found, EntityTupleField | PrimitiveTupleField)
        self.may_be_null = is_optional(field)
        self.name = field.name
        self.entity = found.type_ if isinstance(found, EntityField | EntityTupleField) else None
        self.kind = field.metadata.get("kafka_type", "")
        self.size = _SIZES.get(self.kind)
        self.limits = None if self.may_be_null else _LIMITS.get(self.kind)
        self.known_size = None if self.is_array or self.entity is not None or self.limits is not None else self.size
        """The size of the field in any message, None where it has to be read."""

    def end(self, data: bytes, position: int, scan: MessageScan, *, flexible: bool) -> int:
        """Return the position after the field."""
        if not self.is_array:
            return self._end_of_one(data, position, scan, flexible=flexible)
        count, position = scan.length(data, position, flexible=flexible)
        if count < 0:
            if not self.may_be_null:
                raise MalformedError(f"the array {self.name} is null")
            return position
        scan.add(count, len(data) - position)
        if self.size is not None:
            return position + count * self.size
        for _ in range(count):
            position = self._end_of_one(data, position, scan, flexible=flexible)
        return position

    def _end_of_one(self, data: bytes, position: int, scan: MessageScan, *, flexible: bool) -> int:
        if self.entity is not None:
            if self.may_be_null and not self.is_array:  # a byte says whether there is one
                position += 1
                if data[position - 1] > 0x7F:
                    return position
            return end_of_message(self.entity, data, position, scan)
        if self.size is not None:
            if self.limits is not None:
                scan.time(data, position, *self.limits)
            return position + self.size
        is_string = self.kind == _STRING
        length, position = scan.length(data, position, flexible=flexible, short=is_string)
        if is_string and length > LONGEST_STRING:  # records of it could not be read by Kafka
            raise MalformedError(f"the string {self.name} has more than {LONGEST_STRING} bytes")
        return position + max(length, 0)


@cache
def _plans(message: Any) -> tuple[tuple[_Plan | int, ...], dict[int, _Plan]]:
    """Return the fields of a message in order, those of known size by the sum of their sizes, and the tagged ones."""
    plans = [(field.metadata.get("tag"), _Plan(field)) for field in fields(message)]
    in_order: list[_Plan | int] = []
    for plan in (plan for tag, plan in plans if tag is None):
        if plan.known_size is None:
            in_order.append(plan)
        elif in_order and isinstance(in_order[-1], int):
            in_order[-1] += plan.known_size
        else:
            in_order.append(plan.known_size)
    return tuple(in_order), {tag: plan for tag, plan in plans if tag is not None}


def end_of_message(message: Any, data: bytes, position: int, scan: MessageScan) -> int:
    """Return the position after a message of kio's class, which `scan` counts.

    Raises MalformedError, IndexError or struct.error if an array is longer than the rest of `data`, and MalformedError
    beyond the limits of elements and tagged fields.
    """
    in_order, tagged = _plans(message)
    flexible = message.__flexible__
    for plan in in_order:
        position = position + plan if isinstance(plan, int) else plan.end(data, position, scan, flexible=flexible)
    if flexible:
        position = scan.end_of_tags(tagged, data, position)
    if position > len(data):
        raise MalformedError("the message ends too early")
    return position


def read_message(message: Any, data: bytes, position: int) -> tuple[Any, int]:
    """Decode a message of kio's class; returns it and the position after it.

    Raises as `end_of_message`, and as kio's reader.
    """
    scan = MessageScan()
    end = end_of_message(message, data, position, scan)
    return scan.read(message, data, position), end
