"""A data file of the log before it is written: its encoded rows, and the log's end after them.

The log's chain of hashes binds each commit to all rows before it, in any arrangement of files. The hash after a row
depends on every row from the chain's start up to that row, and on nothing else: not on the commits of the rows, nor on
files. The chain detects loss and mix-up; it does not protect against an attacker. The hash consists of two running
checksums, which continue over any boundary: CRC-32 over each row's place (offset, epoch, time, batch, kind, length of
its payload) in the low half, CRC32C over the payloads in the high half, together a signed 64-bit integer. A row's type
and version are part of its payload; `verify` compares the columns with it.

Most commits hold a record or two. Their file, which fills one disk block with its footer, compressed or not, is written
here: in 0.01 ms where pyarrow takes 0.14, a third of an append's CPU. It has one row group, one plain page per column,
no compression, statistics on the offset. Source: parquet-format's parquet.thrift (in Thrift's compact protocol) and
Encodings.md, PLAIN and RLE.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.data_files import (
    column_statistics,
    encode_parquet,
    file_statistics,
    write_data_file,
)
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.log_facts import CHAIN, CHAIN_END, CHAIN_START, END_OFFSET, EPOCH, NO_EPOCH, START_OFFSET
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch
from kraftlake.records.crc32c import crc32c
from kraftlake.records.rows import LOG_SCHEMA, columns_to_rows, to_columns
from kraftlake.records.varint import uvarint

STATISTICS_COLUMNS = ("offset", "epoch", "timestamp", "batch", "type")
"""The columns whose bounds every file of the log states."""

FIRST_HASH = 0
"""The hash before the first row of a chain."""

_PLACE = struct.Struct("<qiqq?hI")
_PLACE_FIELDS = (
    *(("offset", "<i8"), ("epoch", "<i4"), ("timestamp", "<i8"), ("batch", "<i8"), ("control", "?")),
    *(("api_key", "<i2"), ("size", "<u4")),
)
_NO_TIME = -1
"""Microseconds in place of a null; no time in whole milliseconds has this value."""

MOST_BYTES = 2_048
"""The maximum size of rows that fill one disk block together with the footer, compressed or not."""

_ROW_BYTES = 48
"""The minimum size of a row's numbers and of the lengths of its two texts."""

_MAGIC = b"PAR1"
_CREATED_BY = b"kraftlake version 0"
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12


@attrs.frozen(kw_only=True)
class LogEnd:
    """The end of a log: the offset after its last one, the epoch of its last batch, the hash of its chain.

    `chain` is None for a log without rows, or if the last row was appended by a release that keeps no chain.
    """

    end_offset: int
    epoch: int
    chain: int | None

    @classmethod
    def of(cls, state: TableState) -> LogEnd:
        """Return the end of the log whose table is in this state."""
        facts, end_offset = state.transactions, end_offset_of(state)
        chained = CHAIN in facts and CHAIN_START in facts and facts.get(CHAIN_END) == end_offset
        return cls(end_offset=end_offset, epoch=facts.get(EPOCH, NO_EPOCH), chain=facts[CHAIN] if chained else None)


def end_offset_of(state: TableState) -> int:
    """Return the offset after the last one of the log whose table is in this state."""
    end_offset = state.transactions.get(END_OFFSET)
    return int(state.metadata.configuration[START_OFFSET]) if end_offset is None else end_offset


@attrs.frozen(kw_only=True)
class RowsFile:
    """At least one row of the log as a Parquet file: the first row's offset, and the log's end after the rows.

    `statistics` is the `stats` string of the file's add.
    """

    first_offset: int
    end: LogEnd
    data: bytes | memoryview = attrs.field(repr=False)
    statistics: str = attrs.field(repr=False)

    @classmethod
    def of_rows(cls, rows: pa.Table, chain_before: int = FIRST_HASH) -> RowsFile:
        """Build the file of rows in LOG_SCHEMA, sorted by offset."""
        return cls(
            first_offset=rows.column("offset")[0].as_py(),
            end=LogEnd(
                end_offset=rows.column("offset")[-1].as_py() + 1,
                epoch=rows.column("epoch")[-1].as_py(),
                chain=hash_of_rows(rows, chain_before),
            ),
            data=encode_parquet(rows),
            statistics=file_statistics(rows, STATISTICS_COLUMNS).to_json(),
        )

    @classmethod
    def of_batches(cls, batches: Iterable[RecordBatch], chain_before: int = FIRST_HASH) -> RowsFile:
        """Build the file of the batches' rows, in offset order."""
        columns = to_columns(batches)
        if not fits_one_block(columns):
            return cls.of_rows(columns_to_rows(columns), chain_before)
        return cls(
            first_offset=columns["offset"][0],
            end=LogEnd(
                end_offset=columns["offset"][-1] + 1,
                epoch=columns["epoch"][-1],
                chain=hash_of_columns(columns, chain_before),
            ),
            data=encode_one_block(columns),
            statistics=column_statistics(columns, STATISTICS_COLUMNS).to_json(),
        )

    def write(self, disk: Disk, table: Location, *, sync: bool = True) -> AddFile:
        """Write the file and return the action that adds it.

        The file is no part of the log before a commit has this action. Without `sync` that commit makes the file and
        the table's folder durable.
        """
        return write_data_file(disk, table, f"{self.first_offset:020d}", self.data, self.statistics, sync=sync)


def hash_of_rows(rows: pa.Table, before: int) -> int:
    """Continue a hash over rows in offset order; the columns are BATCH_COLUMNS."""
    places, payloads = _halves(before)
    for batch in rows.to_batches():
        if not batch.num_rows:
            continue
        fields = np.empty(batch.num_rows, np.dtype(list(_PLACE_FIELDS)))
        for name in ("offset", "epoch", "batch", "control", "api_key"):
            fields[name] = batch.column(name).to_numpy(zero_copy_only=False)
        times = batch.column("timestamp").cast(pa.int64()).fill_null(_NO_TIME)
        fields["timestamp"] = times.to_numpy(zero_copy_only=False)
        payload = batch.column("payload")
        _, ends, data = payload.buffers()
        bounds = np.frombuffer(ends, np.int32, len(payload) + 1, payload.offset * 4)
        fields["size"] = np.diff(bounds)
        places = zlib.crc32(fields.view(np.uint8).data, places)
        if data is not None:
            payloads = crc32c(data.slice(int(bounds[0]), int(bounds[-1] - bounds[0])), payloads)
    return _joined(places, payloads)


def hash_of_columns(columns: Mapping[str, Sequence[Any]], before: int) -> int:
    """The same as `hash_of_rows` for a few rows in the form of `to_columns`."""
    places, payloads = _halves(before)
    times = [_NO_TIME if time is None else time for time in columns["timestamp"]]
    rows = map(
        _PLACE.pack,
        *(columns["offset"], columns["epoch"], times, columns["batch"], columns["control"], columns["api_key"]),
        map(len, columns["payload"]),
    )
    return _joined(zlib.crc32(b"".join(rows), places), crc32c(b"".join(columns["payload"]), payloads))


def _halves(value: int) -> tuple[int, int]:
    return value & 0xFFFF_FFFF, value >> 32 & 0xFFFF_FFFF


def _joined(places: int, payloads: int) -> int:
    joined: int = struct.unpack("<q", struct.pack("<II", places, payloads))[0]
    return joined


@functools.lru_cache(maxsize=8_192)
def _number(value: int) -> bytes:
    """Encode a non-negative number as a signed one of Thrift's compact protocol."""
    return uvarint(2 * value)


def _field(step: int, kind: int, value: bytes) -> bytes:
    """Encode a field of a struct, `step` ids after the previous one."""
    return bytes([step << 4 | kind]) + value


def _text(value: bytes) -> bytes:
    return uvarint(len(value)) + value


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    assert len(items) < 15
    return bytes([len(items) << 4 | kind]) + b"".join(items)


def _numbers(kind: str) -> Callable[[Sequence[Any]], bytes]:
    return lambda values: struct.pack(f"<{len(values)}{kind}", *values)


def _bits(values: Sequence[bool]) -> bytes:
    return sum(bit << at for at, bit in enumerate(values)).to_bytes((len(values) + 7) // 8, "little")


def _texts(values: Sequence[bytes | str]) -> bytes:
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    return b"".join([part for value in encoded for part in (len(value).to_bytes(4, "little"), value)])


_TIME = b"\x8c\x11\x1c\x2c\x00\x00\x00\x00"  # a union's field 8: adjusted to UTC, its unit microseconds
_FORMS: dict[pa.DataType, tuple[int, bytes, Callable[[Sequence[Any]], bytes]]] = {
    pa.bool_(): (0, b"", _bits),
    pa.int16(): (1, _field(2, _I32, _number(16)) + _field(4, _STRUCT, b"\xac\x13\x10\x11\x00\x00"), _numbers("i")),
    pa.int32(): (1, b"", _numbers("i")),
    pa.int64(): (2, b"", _numbers("q")),
    pa.timestamp("us", tz="UTC"): (2, _field(2, _I32, _number(10)) + _field(4, _STRUCT, _TIME), _numbers("q")),
    pa.string(): (6, _field(2, _I32, _number(0)) + _field(4, _STRUCT, b"\x1c\x00\x00"), _texts),
    pa.binary(): (6, b"", _texts),
}
"""For each column type: Parquet's physical type, the schema's converted and logical type, and the plain encoding."""


class _Column:
    """The constant parts of a column's description in a file: its schema leaf and the start of its chunk's metadata."""

    def __init__(self, field: pa.Field) -> None:
        physical, types, self.encode = _FORMS[field.type]
        self.name: str = field.name
        self.nullable: bool = field.nullable
        name = _text(field.name.encode())
        kind = _number(physical)
        self.leaf = (
            _field(1, _I32, kind) + _field(2, _I32, _number(field.nullable)) + _field(1, _BINARY, name) + types + b"\0"
        )
        encodings = _list(_I32, [_number(3), _number(0)])
        self.metadata = (
            _field(2, _I64, _number(0))  # file_offset, of no use any more
            + _field(1, _STRUCT, b"")
            + _field(1, _I32, kind)
            + _field(1, _LIST, encodings)
            + _field(1, _LIST, _list(_BINARY, [name]))
            + _field(1, _I32, _number(0))  # no compression
            + _field(1, _I64, b"")  # num_values follows
        )


_COLUMNS = tuple(_Column(field) for field in LOG_SCHEMA)
_ROOT = _field(4, _BINARY, _text(b"schema")) + _field(1, _I32, _number(len(_COLUMNS))) + b"\0"
_FOOTER_HEAD = (
    _field(1, _I32, _number(2))
    + _field(1, _LIST, _list(_STRUCT, [_ROOT, *(column.leaf for column in _COLUMNS)]))
    + _field(1, _I64, b"")  # num_rows follows
)
_GROUP_HEAD = _field(1, _LIST, bytes([1 << 4 | _STRUCT])) + _field(1, _LIST, bytes([len(_COLUMNS) << 4 | _STRUCT]))
_FOOTER_TAIL = (
    _field(2, _BINARY, _text(_CREATED_BY))
    + _field(1, _LIST, _list(_STRUCT, [b"\x1c\x00\x00"] * len(_COLUMNS)))  # order of values: by their type
    + b"\0"
)
_PAGE_LEVELS = _field(1, _I32, _number(0)) + _field(1, _I32, _number(3)) + _field(1, _I32, _number(3)) + b"\0\0"


def fits_one_block(columns: Mapping[str, list[Any]]) -> bool:
    """Whether rows, given as columns, are few and small enough."""
    texts = sum(map(len, columns["payload"])) + sum(map(len, columns["type"]))
    return len(columns["offset"]) * _ROW_BYTES + texts <= MOST_BYTES


def encode_one_block(columns: Mapping[str, list[Any]]) -> bytes:
    """Encode at least one row, given as LOG_SCHEMA's `columns` in the form of `to_columns`, as a Parquet file."""
    offsets = columns["offset"]
    rows = _number(len(offsets))
    low, high = struct.pack("<q", min(offsets)), struct.pack("<q", max(offsets))
    # No nulls, the largest and the smallest value.
    statistics = b"".join((b"\x3c\x36\x00\x28\x08", high, b"\x18\x08", low, b"\0"))
    body = [_MAGIC]
    footer = [_FOOTER_HEAD, rows, _GROUP_HEAD]
    position = len(_MAGIC)
    for column in _COLUMNS:
        values = columns[column.name]
        page = _nullable(column, values) if column.nullable else column.encode(values)
        page_size = _number(len(page))
        # type: data page; both sizes; the data page's header with the number of values.
        header = b"".join((b"\x15\x00\x15", page_size, b"\x15", page_size, b"\x2c\x15", rows, _PAGE_LEVELS))
        body += (header, page)
        size = len(header) + len(page)
        number = _number(size)
        footer += (column.metadata, rows, b"\x16", number, b"\x16", number, b"\x26", _number(position), statistics)
        footer.append(b"\0\0")
        statistics = b""  # those of the offset, the first column
        position += size
    total = _number(position - len(_MAGIC))
    # The row group's bytes, rows, place, bytes again, and its number among the groups.
    footer += (b"\x16", total, b"\x16", rows, b"\x26", _number(len(_MAGIC)), b"\x16", total, b"\x14\x00\0")
    footer.append(_FOOTER_TAIL)
    foot = b"".join(footer)
    body += (foot, len(foot).to_bytes(4, "little"), _MAGIC)
    return b"".join(body)


def _nullable(column: _Column, values: Sequence[Any]) -> bytes:
    """Encode a page of nullable values: runs of 1 (present) and 0 (null), each with its length, then the values."""
    levels = b"".join(
        uvarint(2 * len(list(run))) + (b"\1" if there else b"\0")
        for there, run in groupby(value is not None for value in values)
    )
    return len(levels).to_bytes(4, "little") + levels + column.encode([value for value in values if value is not None])


assert _COLUMNS[0].name == "offset"
