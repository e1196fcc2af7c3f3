"""The chain of hashes over a log's rows, which binds each commit to all rows before it, in any arrangement of files.

The hash after a row depends on every row from the chain's start up to that one, and on nothing else: not on how rows
were committed, nor on files. It survives compaction and checkpoints as a txn action, and a trim as a table property.
It detects loss and mix-up; it is no protection against an attacker.

It is two running checksums, which go on over any cut: CRC-32 over each row's place (offset, epoch, time, batch, kind,
length of its payload) in the low half, CRC32C over the payloads in the high half, together a signed 64-bit integer. A
row's type and version stand in its payload; `verify` holds the columns against it.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.metadata_log.log_facts import CHAIN, CHAIN_BASE, CHAIN_END, CHAIN_START, START_OFFSET, LogEnd
from kraftlake.records.crc32c import crc32c
from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.value import Value

if TYPE_CHECKING:
    from kraftlake.metadata_log.delta_table.table_state import TableState

FIRST_HASH = 0
"""The hash before the first row of a chain."""

_PLACE = struct.Struct("<qiqq?hI")
_PLACE_FIELDS = (
    *(("offset", "<i8"), ("epoch", "<i4"), ("timestamp", "<i8"), ("batch", "<i8"), ("control", "?")),
    *(("api_key", "<i2"), ("size", "<u4")),
)
_NO_TIME = -1
"""Microseconds in place of a null; no time in whole milliseconds is that."""

_LINK = re.compile(r"(\d{1,19})(?::([0-9a-f]{16}))?")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ChainLink(Value):
    """The hash of a chain after the row at `offset`, None where only the offset is known; text as OFFSET[:HASH]."""

    offset: int
    hash: int | None = None

    @classmethod
    def parse(cls, text: str) -> ChainLink:
        """From OFFSET or OFFSET:HASH, as `kraftlake import` prints it; raises UsageError for anything else."""
        match = _LINK.fullmatch(text.strip().lower())
        if match is None:
            raise UsageError(f"{text!r} is not OFFSET or OFFSET:HASH, as `kraftlake import` prints it.")
        unsigned = None if match[2] is None else int(match[2], 16)
        return cls(
            offset=int(match[1]),
            hash=unsigned if unsigned is None or unsigned < 2**63 else unsigned - 2**64,
        )

    def __str__(self) -> str:
        return str(self.offset) if self.hash is None else f"{self.offset}:{self.hash % 2**64:016x}"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Chain(Value):
    """A log's chain: the offset of its first row, the one after its last row, and the hash there."""

    start: int
    end: int
    hash: int

    @classmethod
    def of(cls, state: TableState) -> Chain | None:
        """The chain of the log whose table is in this state.

        None where it has none: no row was appended yet, or the last one by a release that keeps no chain.
        """
        facts, end = state.transactions, LogEnd.of(state).end_offset
        if CHAIN not in facts or CHAIN_START not in facts or facts.get(CHAIN_END) != end:
            return None
        return cls(start=facts[CHAIN_START], end=end, hash=facts[CHAIN])

    @property
    def link(self) -> ChainLink:
        """Its last link."""
        return ChainLink(offset=self.end - 1, hash=self.hash)


def chain_base(state: TableState) -> int | None:
    """The hash before the first row that a log holds of its chain; None where a trim did not keep it."""
    start = int(state.metadata.configuration[START_OFFSET])
    chain = Chain.of(state)
    if chain is None or chain.start >= start:
        return FIRST_HASH
    try:
        base = ChainLink.parse(state.metadata.configuration.get(CHAIN_BASE, ""))
    except UsageError:
        return None
    return base.hash if base.offset == start - 1 else None


def hash_before(state: TableState) -> int:
    """The hash that rows which continue the log in `state` go on from."""
    chain = Chain.of(state)
    return FIRST_HASH if chain is None else chain.hash


def hash_of_rows(rows: pa.Table, before: int) -> int:
    """The hash after rows in the order of their offsets, which go on from a hash; the columns are BATCH_COLUMNS."""
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
    """As `hash_of_rows`, of few rows as `to_columns` gives them."""
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
