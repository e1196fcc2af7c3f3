"""Records of clients are checked one by one, alike by compiled code and by the objects that say what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kraftlake.records.varint import uvarint, varint
from kraftlake.replica_manager.errors import InvalidBatchError, InvalidRecordError, InvalidTimestampError
from kraftlake.replica_manager.logs import client_records
from kraftlake.replica_manager.logs.client_records import CheckedRecords, RecordRules, check_records, rewritten

NOW = 1_700_000_000_000
_FIELD = st.one_of(st.none(), st.binary(max_size=5))


def _field(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def record(
    *, time: int = 0, offset: int = 0, key: bytes | None = None, value: bytes | None = b"v", attributes: int = 0,
    headers: tuple[tuple[bytes, bytes | None], ...] = (),
) -> bytes:  # fmt: skip
    """A record with its length before it."""
    body = bytes((attributes,)) + varint(time) + varint(offset) + _field(key) + _field(value) + varint(len(headers))
    body += b"".join(_field(name) + _field(content) for name, content in headers)
    return varint(len(body)) + body


@st.composite
def batches(draw: Any) -> tuple[bytes, int]:
    """Records as clients may send them, of which some bytes may be wrong, and how many there are."""
    count = draw(st.integers(1, 4))
    data = bytearray()
    for place in range(count):
        data += record(
            time=draw(st.sampled_from([0, 0, 5, -7, 40_000, -1 - NOW, 1 << 60])),
            offset=draw(st.sampled_from([place, place, place, 3])),
            key=draw(_FIELD), value=draw(_FIELD), attributes=draw(st.sampled_from([0, 0, 0, 7])),
            headers=tuple(draw(st.lists(st.tuples(st.binary(max_size=2), _FIELD), max_size=2))),
        )  # fmt: skip
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data), count + draw(st.sampled_from([0, 0, 0, 1, -1]))


def with_value_length(length: bytes) -> tuple[bytes, int]:
    """A record whose value has a length that is written somehow."""
    body = bytes(3) + varint(-1) + length + varint(0)
    return varint(len(body)) + body, 1


BEYOND_32_BITS = with_value_length(uvarint(2**33 + 1))
OF_SIX_BYTES = with_value_length(b"\x81\x80\x80\x80\x80\x00")


def outcome(data: bytes, count: int, rules: RecordRules) -> tuple[Any, ...]:
    try:
        return tuple(check_records(data, 0, count, NOW, rules))
    except InvalidBatchError as error:
        return type(error), error.records


@example(made=BEYOND_32_BITS, needs_key=False, width=50_000)
@example(made=OF_SIX_BYTES, needs_key=False, width=50_000)
@given(made=batches(), needs_key=st.booleans(), width=st.sampled_from([10, 50_000, 1 << 61]))
def test_compiled_code_and_objects_agree(made: tuple[bytes, int], needs_key: bool, width: int) -> None:
    data, count = made
    rules = RecordRules(earliest=NOW - width, latest=NOW + width, needs_key=needs_key)
    by_either = outcome(data, count, rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_records, "walk_records", lambda *_: (0, 0))
        assert outcome(data, count, rules) == by_either


@example(made=BEYOND_32_BITS)
@given(made=batches())
def test_records_that_are_sound_can_be_written_anew(made: tuple[bytes, int]) -> None:
    data, count = made
    try:
        found = check_records(data, 0, count, NOW, RecordRules())
    except InvalidBatchError:
        return
    again, base = rewritten(data, 0, count, NOW)
    assert check_records(again, 0, count, base, RecordRules()) == CheckedRecords(found.largest_time, True)
    if found.is_usual:
        assert base == NOW


def test_errors_name_the_records() -> None:
    data = record() + record(time=99, offset=1) + record(time=-99, offset=2)
    rules = RecordRules(earliest=NOW - 10, latest=NOW + 10)
    with pytest.raises(InvalidTimestampError) as raised:
        check_records(data, 0, 3, NOW, rules)
    assert [error.place for error in raised.value.records] == [1, 2]
    with pytest.raises(InvalidRecordError, match="without a key") as other:
        check_records(data, 0, 3, NOW, RecordRules(earliest=NOW - 10, latest=NOW + 10, needs_key=True))
    assert [error.place for error in other.value.records] == [0, 1, 2]


def test_a_record_without_a_time_may_be_in_any_topic() -> None:
    data = record(time=-1 - NOW)
    assert check_records(data, 0, 1, NOW, RecordRules(earliest=NOW, latest=NOW)) == CheckedRecords(-1, False)
