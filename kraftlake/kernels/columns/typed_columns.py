"""Decodes records of one type into columns, one for each field, by a program made from the type's declaration.

The program is a table of steps (`kraftlake.records.column_program` makes it), so that one function decodes every type
at every version. A record that is not plain (a number of more than four bytes, tags out of order, bytes of another
message) stops the decoding: objects decode it, or report the fault.
"""

from __future__ import annotations

import cython

from kraftlake.kernels.columns import column_steps as op
from kraftlake.kernels.columns.column_steps import Output
from kraftlake.kernels.language import (
    Bytes,
    BytesOut,
    Int8,
    Int16,
    Int64,
    LongRowsOut,
    Longs,
    UInt64,
    compiled,
    inlined,
)
from kraftlake.kernels.replay.partition_bytes import read_int, read_long, read_uvarint

_MOST_TAGS = 1024


@inlined
def _add_int(out: Output, column: Int64, number: Int64) -> None:
    if column >= 0:
        k = out.counts[column]
        out.ints[out.places[op.PLACES * column + op.VALUES] + k] = number
        out.counts[column] = k + 1


@inlined
def _add_long(out: Output, column: Int64, number: Int64) -> None:
    if column >= 0:
        k = out.counts[column]
        out.longs[out.places[op.PLACES * column + op.VALUES] + k] = number
        out.counts[column] = k + 1


@inlined
def _add_size(out: Output, column: Int64, size: Int64, valid: Int64) -> Int64:
    """Store the end of one more text or list, and return its start."""
    k = out.counts[column]
    at = out.places[op.PLACES * column + op.ENDS] + k
    begins: Int64 = out.ints[at]
    out.ints[at + 1] = begins + size
    if out.places[op.PLACES * column + op.VALID] >= 0:
        out.bytes[out.places[op.PLACES * column + op.VALID] + k] = valid
    out.counts[column] = k + 1
    return begins


@inlined
def _copy_text(into: BytesOut, to: Int64, data: Bytes, p: Int64, size: Int64) -> None:
    for i in range(size):
        into[to + i] = data[p + i]


@inlined
def _write_uuid(into: BytesOut, to: Int64, high: UInt64, low: UInt64) -> None:
    """Write Kafka's 22 characters of 128 bits, the last of which has two bits of them."""
    letters: cython.p_const_uchar = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for i in range(10):
        into[to + i] = letters[high >> (58 - 6 * i) & 63]
        into[to + 11 + i] = letters[low >> (56 - 6 * i) & 63]
    into[to + 10] = letters[(high & 15) << 2 | low >> 62]
    into[to + 21] = letters[(low & 3) << 4]


@inlined
def _add_uuid(out: Output, column: Int64, high: UInt64, low: UInt64) -> None:
    if column >= 0:
        to = out.places[op.PLACES * column + op.VALUES] + _add_size(out, column, op.UUID_TEXT, 1)
        _write_uuid(out.bytes, to, high, low)


@inlined
def _next_tag(data: Bytes, p: Int64, end: Int64, left: Int64, before: Int64) -> tuple[Int64, Int64, Int64]:
    """The next tag, with the start and end of its value; NO_TAG for none left. The position is -1 for a bad tag."""
    if left <= 0:
        return op.NO_TAG, p, p
    tag, p = read_uvarint(data, p, end)
    if p < 0 or tag <= before:
        return 0, -1, 0
    size, p = read_uvarint(data, p, end)
    if p < 0 or p + size > end:
        return 0, -1, 0
    return tag, p, p + size


@inlined
def _read_number(data: Bytes, p: Int64, end: Int64, step: Int64, column: Int64, out: Output) -> Int64:
    """Read a number of another width than INT32's; returns the position after it, or -1."""
    if step == op.INT64:
        if p + 8 > end:
            return -1
        _add_long(out, column, cython.cast(Int64, read_long(data, p)))
        return p + 8
    if step == op.INT8:
        if p >= end:
            return -1
        _add_int(out, column, cython.cast(Int8, data[p]))
        return p + 1
    if p + 2 > end:
        return -1
    number: Int64 = data[p] << 8 | data[p + 1]
    if step == op.INT16:
        number = cython.cast(Int16, number)
    _add_int(out, column, number)
    return p + 2


@inlined
def _read_size(data: Bytes, p: Int64, end: Int64, nullable: Int64) -> tuple[Int64, Int64]:
    """The size of a text or list, -1 for null, and the position after it, -1 for a bad size."""
    size, p = read_uvarint(data, p, end)
    if p < 0 or (size == 0 and nullable == 0):
        return 0, -1
    return size - 1, p


@inlined
def _read_many(
    data: Bytes, p: Int64, end: Int64, step: Int64, column: Int64, size: Int64, element: Int64, out: Output
) -> Int64:
    """Read a TEXT, INT32_LIST or UUID_LIST of known size (-1: null); returns the position after it, or -1."""
    valid: Int64 = 1
    if size < 0:
        size = valid = 0
    width: Int64 = 16
    if step == op.TEXT:
        width = 1
    elif step == op.INT32_LIST:
        width = 4
    if p + width * size > end:
        return -1
    if column < 0:
        return p + width * size
    begins = _add_size(out, column, size, valid)
    if step == op.TEXT:
        _copy_text(out.bytes, out.places[op.PLACES * column + op.VALUES] + begins, data, p, size)
    elif step == op.INT32_LIST:
        for k in range(size):
            _add_int(out, element, read_int(data, p + 4 * k))
    else:
        for k in range(size):
            _add_uuid(out, element, read_long(data, p + 16 * k), read_long(data, p + 16 * k + 8))
    return p + width * size


@inlined
def _push(
    stack: LongRowsOut, depth: Int64, at: Int64, count: Int64, left: Int64, tag: Int64, tag_stop: Int64, begin: Int64
) -> None:
    """Push the position to continue at when `count` structs, whose steps begin at `begin`, are read."""
    stack[depth, 0] = at
    stack[depth, 1] = count
    stack[depth, 2] = left
    stack[depth, 3] = tag
    stack[depth, 4] = tag_stop
    stack[depth, 5] = begin


@compiled
def decode_records(
    data: Bytes, starts: Longs, stops: Longs, begins: Longs, program: Longs, out: Output, stack: LongRowsOut
) -> Int64:
    """Decode the values data[starts[i]:stops[i]], each by the steps from begins[i] on; returns the number decoded.

    `stack` is int64[DEEPEST, FRAMES], working memory. Where not all values were decoded, `out` is of no use.
    """
    for i in range(len(starts)):
        end = stops[i]
        p = starts[i]
        at: Int64 = begins[i]
        depth: Int64 = 0
        left: Int64 = 0
        tag: Int64 = op.NO_TAG
        tag_stop: Int64 = 0
        while True:
            step = program[op.STEP_NUMBERS * at + op.STEP]
            column = program[op.STEP_NUMBERS * at + op.COLUMN]
            argument = program[op.STEP_NUMBERS * at + op.ARGUMENT]
            target = program[op.STEP_NUMBERS * at + op.TARGET]
            at += 1
            if step == op.INT32:
                if p + 4 > end:
                    return i
                _add_int(out, column, read_int(data, p))
                p += 4
            elif step == op.TAG or step == op.TAGS_DONE:
                while tag < argument:
                    left -= 1
                    tag, p, tag_stop = _next_tag(data, tag_stop, end, left, tag)
                    if p < 0:
                        return i
                if tag != argument:
                    at = target
            elif step == op.TAG_DONE:
                left -= 1
                before = p
                tag, p, stop = _next_tag(data, p, end, left, tag)
                if before != tag_stop or p < 0:
                    return i
                tag_stop = stop
                at = target
            elif step == op.TEXT_DEFAULT or step == op.LIST_DEFAULT:
                _add_size(out, column, 0, 1 - argument)
            elif step == op.NUMBER_DEFAULT:
                _add_int(out, column, argument)
            elif step == op.LONG_DEFAULT:
                _add_long(out, column, argument)
            elif step == op.UUID_DEFAULT:
                _add_uuid(out, column, 0, 0)
            elif step == op.UUID:
                if p + 16 > end:
                    return i
                _add_uuid(out, column, read_long(data, p), read_long(data, p + 8))
                p += 16
            elif step == op.LIST or step == op.STRUCT:
                size: Int64 = 1
                if step == op.LIST:
                    size, p = _read_size(data, p, end, argument)
                    if column >= 0:
                        _add_size(out, column, max(size, 0), size >= 0)
                if p < 0 or size > end - p or depth >= op.DEEPEST:
                    return i
                if size > 0:
                    _push(stack, depth, at, size, left, tag, tag_stop, target)
                    depth += 1
                    at = target
            elif step == op.TAGS:
                left, p = read_uvarint(data, p, end)
                if p < 0 or left > _MOST_TAGS:
                    return i
                tag, p, tag_stop = _next_tag(data, p, end, left, -1)
                if p < 0:
                    return i
            elif step == op.END:
                if depth == 0:
                    break
                stack[depth - 1, 1] -= 1
                if stack[depth - 1, 1] > 0:
                    at = stack[depth - 1, 5]
                else:
                    depth -= 1
                    at = stack[depth, 0]
                    left = stack[depth, 2]
                    tag = stack[depth, 3]
                    tag_stop = stack[depth, 4]
            elif step == op.TEXT or step == op.INT32_LIST or step == op.UUID_LIST:
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
