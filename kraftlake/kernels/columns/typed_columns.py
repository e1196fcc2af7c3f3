"""Records of one type into columns, a column a field, by a program that is made of the type's declaration.

The program is a table of steps (`kraftlake.records.column_program` makes it), so that one function decodes every type
at every version. A record that is not plain (a number of more than four bytes, tags out of order, bytes that are no
such message) stops it: objects decode it, or say what is wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from kraftlake.kernels.language import compiled, inlined
from kraftlake.kernels.replay.partition_bytes import read_int, read_long, read_uvarint

(
    INT8,
    INT16,
    UINT16,
    INT32,
    INT64,
    UUID,
    TEXT,
    INT32_LIST,
    UUID_LIST,
    LIST,
    STRUCT,
    TAGS,
    TAG,
    TAG_DONE,
    TAGS_DONE,
    END,
    NUMBER_DEFAULT,
    LONG_DEFAULT,
    TEXT_DEFAULT,
    UUID_DEFAULT,
    LIST_DEFAULT,
) = range(21)
"""The steps. A row of a program is (step, column or -1, argument, target):

INT8 to INT64 and UUID read a value; TEXT a string or bytes, where argument 1 allows null; INT32_LIST and UUID_LIST an
array into the list `column` and its elements into `target`; LIST an array whose elements the steps from `target` on
read (null as for TEXT); STRUCT one such. TAGS begins tagged fields, TAG goes on with the next row where tag `argument`
is there, else with `target`; TAG_DONE ends its value and goes on at `target`; TAGS_DONE, whose argument is above all
tags, skips what is left. END ends a struct or the record. The defaults stand for fields that are absent: `argument` is
the number, or 1 for null.
"""

STEP, COLUMN, ARGUMENT, TARGET = range(4)
VALUES, ENDS, VALID = range(3)
DEEPEST = 8
FRAMES = 6
UUID_TEXT = 22
NO_TAG = 1 << 40
_MOST_TAGS = 1024
_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)


class Output(NamedTuple):
    """Where columns go. Of column c, counts[c] elements are there.

    places[c] (VALUES, ENDS, VALID) says where its parts begin: numbers in `ints` or `longs`, text in `bytes`; the ends
    of texts and lists in `ints`, behind a 0; a byte of `bytes` for each element that may be null. -1: it has none.
    """

    bytes: Any
    ints: Any
    longs: Any
    counts: Any
    places: Any


@inlined
def _add_int(out: Any, column: Any, number: Any) -> None:
    if column >= 0:
        k = out.counts[column]
        out.ints[np.uint64(out.places[column, VALUES] + k)] = number
        out.counts[column] = k + 1


@inlined
def _add_long(out: Any, column: Any, number: Any) -> None:
    if column >= 0:
        k = out.counts[column]
        out.longs[np.uint64(out.places[column, VALUES] + k)] = number
        out.counts[column] = k + 1


@inlined
def _add_size(out: Any, column: Any, size: Any, valid: Any) -> Any:
    """Note the end of one more text or list, and give where it begins."""
    k = out.counts[column]
    at = out.places[column, ENDS] + k
    begins = np.int64(out.ints[np.uint64(at)])
    out.ints[np.uint64(at + 1)] = np.int32(begins + size)
    if out.places[column, VALID] >= 0:
        out.bytes[np.uint64(out.places[column, VALID] + k)] = valid
    out.counts[column] = k + 1
    return begins


@inlined
def _add_text(out: Any, column: Any, data: Any, p: Any, size: Any, valid: Any) -> None:
    if column >= 0:
        to = out.places[column, VALUES] + _add_size(out, column, size, valid)
        for i in range(size):
            out.bytes[np.uint64(to + i)] = data[np.uint64(p + i)]


@inlined
def _add_uuid(out: Any, column: Any, high: Any, low: Any) -> None:
    """Kafka's 22 characters of 128 bits, the last of which has two bits of them."""
    if column < 0:
        return
    to = np.uint64(out.places[column, VALUES] + _add_size(out, column, UUID_TEXT, 1))
    for i in range(10):
        out.bytes[to + np.uint64(i)] = _LETTERS[(high >> np.uint64(58 - 6 * i)) & 63]
    both = ((high & 15) << 2) | (low >> 62)
    out.bytes[to + 10] = _LETTERS[both]
    for i in range(10):
        out.bytes[to + np.uint64(11 + i)] = _LETTERS[(low >> np.uint64(56 - 6 * i)) & 63]
    out.bytes[to + 21] = _LETTERS[(low & 3) << 4]


@inlined
def _next_tag(data: Any, p: Any, end: Any, left: Any, before: Any) -> Any:
    """The next tag, where its value begins and ends; NO_TAG when none is left. The position is -1 where one is bad."""
    if left <= 0:
        return np.int64(NO_TAG), np.int64(p), np.int64(p)
    tag, p = read_uvarint(data, p, end)
    if p < 0 or tag <= before:
        return 0, -1, 0
    size, p = read_uvarint(data, p, end)
    if p < 0 or p + size > end:
        return 0, -1, 0
    return np.int64(tag), np.int64(p), np.int64(p + size)


@inlined
def _read_number(data: Any, p: Any, end: Any, step: Any, column: Any, out: Any) -> Any:
    """A number of another width than INT32's; the position behind it, or -1."""
    if step == INT64:
        if p + 8 > end:
            return -1
        _add_long(out, column, np.int64(read_long(data, p)))
        return p + 8
    if step == INT8:
        if p >= end:
            return -1
        _add_int(out, column, np.int32(np.int8(data[np.uint64(p)])))
        return p + 1
    if p + 2 > end:
        return -1
    number = np.int32(data[np.uint64(p)]) << 8 | np.int32(data[np.uint64(p + 1)])
    _add_int(out, column, np.int32(np.int16(number)) if step == INT16 else np.int32(number))
    return p + 2


@inlined
def _read_size(data: Any, p: Any, end: Any, nullable: Any) -> Any:
    """The size of a text or list, -1 for null, and the position behind it, -1 where it is none."""
    size, p = read_uvarint(data, p, end)
    if p < 0 or (size == 0 and nullable == 0):
        return 0, -1
    return np.int64(size - 1), np.int64(p)


@inlined
def _read_many(data: Any, p: Any, end: Any, step: Any, column: Any, size: Any, element: Any, out: Any) -> Any:
    """A TEXT, INT32_LIST or UUID_LIST of known size (-1: null); the position behind it, or -1."""
    valid = 1
    if size < 0:
        size = valid = 0
    width = 1 if step == TEXT else 4 if step == INT32_LIST else 16
    if p + width * size > end:
        return -1
    if step == TEXT:
        _add_text(out, column, data, p, size, valid)
    elif column >= 0:
        _add_size(out, column, size, valid)
        if step == INT32_LIST:
            for k in range(size):
                _add_int(out, element, read_int(data, p + 4 * k))
        else:
            for k in range(size):
                _add_uuid(out, element, read_long(data, p + 16 * k), read_long(data, p + 16 * k + 8))
    return p + width * size


@inlined
def _add_default(step: Any, column: Any, argument: Any, out: Any) -> None:
    if step == NUMBER_DEFAULT:
        _add_int(out, column, np.int32(argument))
    elif step == LONG_DEFAULT:
        _add_long(out, column, argument)
    elif step == UUID_DEFAULT:
        _add_uuid(out, column, 0, 0)
    elif column >= 0:  # a text or a list
        _add_size(out, column, 0, 1 - argument)


@inlined
def _push(stack: Any, depth: Any, at: Any, count: Any, left: Any, tag: Any, tag_stop: Any, begin: Any) -> None:
    """What to go on with when `count` structs, whose steps begin at `begin`, are read."""
    stack[depth, 0], stack[depth, 1], stack[depth, 5] = at, count, begin
    stack[depth, 2], stack[depth, 3], stack[depth, 4] = left, tag, tag_stop


@compiled
def decode_records(data: Any, starts: Any, stops: Any, begins: Any, program: Any, out: Any, stack: Any) -> Any:
    """Decode the values data[starts[i]:stops[i]], each by the steps from begins[i] on; gives how many were.

    `stack` is int64[DEEPEST, FRAMES], for use inside. Where fewer were decoded than there are, `out` is of no use.
    """
    for i in range(len(starts)):
        end: Any = np.int64(stops[i])
        p, at = np.int64(starts[i]), np.int64(begins[i])
        depth = 0
        left, tag, tag_stop = 0, np.int64(NO_TAG), 0
        while True:
            row = np.uint64(at)
            step, column, argument, target = program[row, 0], program[row, 1], program[row, 2], program[row, 3]
            at += 1
            if step == INT32:
                if p + 4 > end:
                    return i
                _add_int(out, column, read_int(data, p))
                p += 4
            elif step == TAG or step == TAGS_DONE:
                while tag < argument:
                    left -= 1
                    tag, p, tag_stop = _next_tag(data, tag_stop, end, left, tag)
                    if p < 0:
                        return i
                if tag != argument:
                    at = target
            elif step == TAG_DONE:
                left -= 1
                before = p
                tag, p, stop = _next_tag(data, p, end, left, tag)
                if before != tag_stop or p < 0:
                    return i
                tag_stop = stop
                at = target
            elif step >= NUMBER_DEFAULT:
                _add_default(step, column, argument, out)
            elif step == UUID:
                if p + 16 > end:
                    return i
                _add_uuid(out, column, read_long(data, p), read_long(data, p + 8))
                p += 16
            elif step == LIST or step == STRUCT:
                size = 1
                if step == LIST:
                    size, p = _read_size(data, p, end, argument)
                    if column >= 0:
                        _add_size(out, column, max(size, 0), np.int64(size >= 0))
                if p < 0 or size > end - p or depth >= DEEPEST:
                    return i
                if size > 0:
                    _push(stack, depth, at, size, left, tag, tag_stop, target)
                    depth += 1
                    at = target
            elif step == TAGS:
                left, p = read_uvarint(data, p, end)
                if p < 0 or left > _MOST_TAGS:
                    return i
                tag, p, tag_stop = _next_tag(data, p, end, left, -1)
                if p < 0:
                    return i
            elif step == END:
                if depth == 0:
                    break
                stack[depth - 1, 1] -= 1
                if stack[depth - 1, 1] > 0:
                    at = stack[depth - 1, 5]
                else:
                    depth -= 1
                    at, left = stack[depth, 0], stack[depth, 2]
                    tag, tag_stop = stack[depth, 3], stack[depth, 4]
            elif step == TEXT or step == INT32_LIST or step == UUID_LIST:
                size, p = _read_size(data, p, end, argument)
                if p >= 0:
                    p = _read_many(data, p, end, step, column, size, target, out)
                if p < 0:
                    return i
            else:
                p = _read_number(data, p, end, step, column, out)
                if p < 0:
                    return i
        if p != end:
            return i
    return len(starts)
