"""Validation of the records of a client's batch, one by one, before the leader appends them.

Source: org.apache.kafka.common.record.DefaultRecord.readFrom, org.apache.kafka.storage.internals.log.LogValidator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import attrs

from kraftlake.kernels.compiled import walk_records
from kraftlake.records.varint import MalformedError, read_varint, read_varlong, varint
from kraftlake.replica_manager.errors import InvalidRecordError, InvalidTimestampError, RecordError

_NO_TIME: Final = -1
_FAR: Final = 1 << 62
_USUAL: Final = 2
MOST_ERRORS: Final = 10_000
"""The maximum number of records in an error: a small compressed batch may have millions of invalid ones."""


@attrs.frozen(kw_only=True)
class RecordRules:
    """The requirements of a topic on records: timestamps in epoch ms within a range, unless −1, and keys."""

    earliest: int = -_FAR
    latest: int = _FAR
    needs_key: bool = False


class CheckedRecords(NamedTuple):
    """The properties of valid records: their largest timestamp or −1, and whether a producer would write this form.

    In that form the records have no attributes and consecutive offsets, and the first record has the base timestamp.
    """

    largest_time: int
    is_usual: bool


class _Record(NamedTuple):
    time: int
    offset_delta: int
    has_key: bool
    attributes: int
    rest: int
    """The position of the key's length."""
    stop: int


def check_records(
    data: bytes | memoryview, start: int, count: int, base_time: int, rules: RecordRules
) -> CheckedRecords:
    """Check the `count` records in data[start:].

    Raises InvalidTimestampError if only timestamps are invalid, InvalidRecordError otherwise; both have up to
    `MOST_ERRORS` of the invalid records.
    """
    earliest, latest = max(rules.earliest, -_FAR), min(rules.latest, _FAR)
    state, largest = walk_records(data, start, len(data), count, base_time, earliest, latest, rules.needs_key)
    if state:
        return CheckedRecords(max(_NO_TIME, largest), state == _USUAL)
    largest_time, is_usual = _NO_TIME, True
    wrong: list[RecordError] = []
    count_of_wrong, are_of_time = 0, True
    for place, record in enumerate(_records(data, start, count, base_time)):
        error = _problem(place, record, rules)
        if error is not None:
            count_of_wrong, are_of_time = count_of_wrong + 1, are_of_time and error.is_of_time
            if len(wrong) < MOST_ERRORS:
                wrong.append(error)
        is_usual = is_usual and record.attributes == 0 and record.offset_delta == place
        is_usual = is_usual and (place > 0 or record.time == base_time)
        largest_time = max(largest_time, record.time)
    if wrong:
        kind = InvalidTimestampError if are_of_time else InvalidRecordError
        raise kind(f"{count_of_wrong} records can't be appended; the first one: {wrong[0].message}", tuple(wrong))
    return CheckedRecords(largest_time, is_usual)


def check_sizes(data: bytes | memoryview, largest: int) -> None:
    """Raise InvalidRecordError for a decompressed record of more than `largest` bytes after its length."""
    at = 0
    while len(data) > largest and at < len(data):
        try:
            size, at = read_varint(data, at)
        except (MalformedError, IndexError):
            return  # check_records says what is wrong
        if size > largest:
            raise InvalidRecordError(
                f"A record has {size} bytes when it is decompressed: max.decompressed.message.bytes is {largest}."
            )
        at += max(size, 0)


def rewritten(data: bytes | memoryview, start: int, count: int, base_time: int) -> tuple[memoryview, int]:
    """Return valid records in the form that producers write, and their base timestamp."""
    made, first = bytearray(), None
    for place, record in enumerate(_records(data, start, count, base_time)):
        first = record.time if first is None else first
        body = b"\0" + varint(record.time - first) + varint(place) + data[record.rest : record.stop]
        made += varint(len(body))
        made += body
    assert first is not None, "a batch has records"
    return memoryview(made).toreadonly(), first


def _problem(place: int, record: _Record, rules: RecordRules) -> RecordError | None:
    if rules.needs_key and not record.has_key:
        return RecordError(place, "A compacted topic can't take a record without a key.", is_of_time=False)
    if record.time != _NO_TIME and not rules.earliest <= record.time <= rules.latest:
        message = f"The time {record.time} is not between {rules.earliest} and {rules.latest}."
        return RecordError(place, message, is_of_time=True)
    return None


def _records(data: bytes | memoryview, start: int, count: int, base_time: int) -> Iterator[_Record]:
    at = start
    try:
        for _ in range(count):
            size, at = read_varint(data, at)
            stop = at + size
            if stop > len(data):
                raise InvalidRecordError(f"A record of {size} bytes goes beyond its batch.")
            attributes = data[at]
            time_delta, at = read_varlong(data, at + 1)
            offset_delta, rest = read_varint(data, at)
            key, at = _behind(data, rest)
            _, at = _behind(data, at)
            headers, at = read_varint(data, at)
            if not 0 <= headers <= len(data) - at:
                raise InvalidRecordError(f"A record has {headers} headers.")
            for _ in range(headers):
                name, at = _behind(data, at)
                if name < 0:
                    raise InvalidRecordError("A header of a record has no name.")
                _, at = _behind(data, at)
            if at != stop:
                raise InvalidRecordError(f"A record says that it has {size} bytes, and has {size + at - stop}.")
            yield _Record(base_time + time_delta, offset_delta, key >= 0, attributes, rest, stop)
    except (MalformedError, IndexError) as fault:
        raise InvalidRecordError(f"A batch has records that can't be read: {fault}") from None
    if at != len(data):
        raise InvalidRecordError(f"A batch has {len(data) - at} bytes behind its records.")


def _behind(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Read the length at a position, and return it with the position after that many bytes."""
    length, at = read_varint(data, at)
    return length, at + max(length, 0)
