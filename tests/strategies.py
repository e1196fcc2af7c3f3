"""Hypothesis strategies of records and batches, derived from the declarations, for the tests of every room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import CONTROL_RECORDS
from kraftlake.records.metadata_records import METADATA_RECORDS
from kraftlake.records.schema import FieldSpec, Message, Primitive, Struct, field_specs
from kraftlake.records.serde import ApiMessageAndVersion, UnknownRecord
from kraftlake.records.uuid import Uuid
from kraftlake.records.varint import uvarint

METADATA_TYPES: tuple[type[Message], ...] = tuple(METADATA_RECORDS.values())
CONTROL_TYPES: tuple[type[Message], ...] = tuple(CONTROL_RECORDS.values())
LATEST_MILLIS = 253_402_300_799_999  # the end of the year 9999


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


uuids = st.one_of(st.binary(min_size=16, max_size=16), st.integers(0, 200).map(lambda n: n.to_bytes(16, "big"))).map(
    Uuid
)
strings = st.text(max_size=200) | st.text("abc.-_", max_size=5)

_VALUES: dict[Primitive, st.SearchStrategy[Any]] = {
    Primitive.BOOL: st.booleans(),
    Primitive.INT8: _integers(8),
    Primitive.INT16: _integers(16),
    Primitive.UINT16: st.integers(0, 0xFFFF),
    Primitive.INT32: _integers(32) | st.integers(-2, 6),
    Primitive.INT64: _integers(64),
    Primitive.FLOAT64: st.floats(allow_nan=False),  # a NaN is not equal to itself
    Primitive.STRING: strings,
    Primitive.BYTES: st.binary(max_size=200),
    Primitive.UUID: uuids,
}


def versions_of(cls: type[Message]) -> list[int]:
    """All versions of a record type."""
    assert cls.VERSIONS.high is not None
    return list(range(cls.VERSIONS.low, cls.VERSIONS.high + 1))


def _field(spec: FieldSpec, version: int, unknown_tags: bool) -> st.SearchStrategy[Any]:
    if isinstance(spec.type, Primitive):
        one = _VALUES[spec.type]
    else:
        one = structs_of(spec.type, version, unknown_tags=unknown_tags)
    value = st.lists(one, max_size=6).map(tuple) if spec.array else one
    return st.none() | value if spec.nullable is not None and version in spec.nullable else value


@st.composite
def structs_of(draw: Callable[..., Any], cls: type[Struct], version: int, *, unknown_tags: bool = True) -> Any:
    """A struct or message with any values that `version` can hold; a third of the fields have their default."""
    fields: dict[str, Any] = {}
    known = set()
    for name, spec in field_specs(cls):
        if version in spec.versions:
            known.add(spec.tag)
            if draw(st.integers(0, 2)):
                fields[name] = draw(_field(spec, version, unknown_tags))
    if cls in CONTROL_TYPES:
        fields["version"] = version  # it says itself at which version it is written
    if unknown_tags and draw(st.integers(0, 9)) == 0:
        tags = draw(
            st.dictionaries(
                st.integers(0, 0xFFFFFFFF).filter(lambda t: t not in known), st.binary(max_size=20), max_size=3
            )
        )
        fields["unknown_tagged_fields"] = tuple(sorted(tags.items()))
    return cls(**fields)


def messages_of(cls: type[Message], version: int, *, unknown_tags: bool = True) -> st.SearchStrategy[Any]:
    """Messages of one type, with values that its `version` can hold."""
    return structs_of(cls, version, unknown_tags=unknown_tags)


@st.composite
def messages(
    draw: Callable[..., Any], types: tuple[type[Message], ...] = METADATA_TYPES, *, unknown_tags: bool = True
) -> ApiMessageAndVersion:
    """A metadata record of any type (or of `types`) at any of its versions."""
    cls = draw(st.sampled_from(types))
    version = draw(st.sampled_from(versions_of(cls)))
    return ApiMessageAndVersion(draw(messages_of(cls, version, unknown_tags=unknown_tags)), version)


def control_messages() -> st.SearchStrategy[ApiMessageAndVersion]:
    """A control record of any type at any of its versions."""
    return messages(CONTROL_TYPES)


@st.composite
def unknown_records(draw: Callable[..., Any]) -> ApiMessageAndVersion:
    """A metadata record of a type that does not exist yet, or in a version that does not."""
    new_types = st.tuples(st.integers(30, 0x7FFF), st.integers(0, 0x7FFF))
    new_versions = st.tuples(st.sampled_from(sorted(METADATA_RECORDS)), st.integers(5, 0x7FFF))
    api_key, version = draw(new_types | new_versions)
    payload = b"\x01" + uvarint(api_key) + uvarint(version) + draw(st.binary(max_size=50))
    return ApiMessageAndVersion(UnknownRecord(api_key, version, payload), version)


timestamps = st.integers(-1, LATEST_MILLIS) | st.just(-1) | st.integers(1_700_000_000_000, 1_700_000_100_000)


offsets = st.integers(0, 1 << 60)


@st.composite
def batches(draw: Callable[..., Any], base_offsets: st.SearchStrategy[int] = offsets) -> RecordBatch:
    """A data or control batch, with unknown records among the others."""
    base_offset = draw(base_offsets)
    epoch = draw(st.integers(0, (1 << 31) - 1))
    if draw(st.integers(0, 3)) == 0:
        control = [m.message for m in draw(st.lists(control_messages(), min_size=1, max_size=4))]
        return RecordBatch.control_of(base_offset, epoch, draw(timestamps), control)
    data = draw(st.lists(messages() | unknown_records(), min_size=1, max_size=8))
    batch = RecordBatch.of(base_offset, epoch, draw(timestamps), data)
    if draw(st.booleans()):
        return batch
    times = tuple(draw(timestamps) for _ in data)
    return attrs.evolve(batch, timestamps=times, timestamp=max(times))
