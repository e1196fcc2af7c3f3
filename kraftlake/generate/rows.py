"""Generated batches as tables of a lake's log, without an object for each record. Imports numpy and pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.generate.plan import MAX_RECORDS_PER_BATCH
from kraftlake.generate.template import RecordKind
from kraftlake.records.rows import LOG_SCHEMA

COMMIT_ROWS = 1_000_000
COMMIT_BYTES = 128 << 20


@attrs.frozen(kw_only=True, eq=False)
class Records:
    """Records in order: `data` (uint8) has the bytes of all values, `sizes` (int64[n]) their sizes, `kinds` (int16[n])
    their indexes in `names`."""

    data: Any = attrs.field(repr=False)
    sizes: Any = attrs.field(repr=False)
    kinds: Any = attrs.field(repr=False)
    names: tuple[RecordKind, ...]

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of_matrix(cls, kind: RecordKind, values: Any) -> Records:
        """Records of one kind and size: uint8[n, size]."""
        count, size = values.shape
        return cls(data=values.reshape(-1), sizes=np.full(count, size), kinds=np.zeros(count, np.int16), names=(kind,))

    @classmethod
    def of_values(cls, values: Sequence[tuple[RecordKind, bytes]]) -> Records:
        """A few records of any kinds."""
        names = tuple(dict.fromkeys(kind for kind, _ in values))
        return cls(
            data=np.frombuffer(b"".join(value for _, value in values), np.uint8),
            sizes=np.array([len(value) for _, value in values], np.int64),
            kinds=np.array([names.index(kind) for kind, _ in values], np.int16),
            names=names,
        )


class BatchRows:
    """Collects batches for tables in LOG_SCHEMA, of at least COMMIT_ROWS rows or COMMIT_BYTES bytes each."""

    def __init__(self, offset: int, epoch: int) -> None:
        self.offset = offset
        """The offset of the next record."""
        self._epoch = epoch
        self._first = offset
        self._bytes = 0
        self._names: dict[RecordKind, int] = {}
        self._clear()

    def _clear(self) -> None:
        self._first = self.offset
        self._bytes = 0
        self._data: list[Any] = []
        self._sizes: list[Any] = []
        self._kinds: list[Any] = []
        self._batches: list[Any] = []
        self._times: list[Any] = []

    def add(self, parts: Sequence[Records], time_ms: int) -> None:
        """Add the records of one operation: one batch, or several of MAX_RECORDS_PER_BATCH."""
        count = sum(map(len, parts))
        self.add_many(parts, np.full(-(-count // MAX_RECORDS_PER_BATCH), MAX_RECORDS_PER_BATCH), time_ms)

    def add_many(self, parts: Sequence[Records], batch_sizes: Any, time_ms: Any) -> None:
        """Add the records of several batches of the given sizes (the last one takes the rest), with a time for each."""
        parts = [part for part in parts if len(part)]
        count = sum(map(len, parts))
        if not count:
            return
        for part in parts:
            numbers = np.array([self._names.setdefault(kind, len(self._names)) for kind in part.names], np.int16)
            self._data.append(part.data)
            self._sizes.append(part.sizes)
            self._kinds.append(numbers[part.kinds])
            self._bytes += part.data.nbytes
        begins = np.concatenate([[0], np.cumsum(batch_sizes)[:-1]])
        lengths = np.diff(np.append(begins, count))
        self._batches.append(np.repeat(self.offset + begins, lengths))
        self._times.append(np.repeat(np.broadcast_to(time_ms, len(lengths)), lengths))
        self.offset += count

    @property
    def is_full(self) -> bool:
        """Whether the collected rows are enough for a commit."""
        return self.offset - self._first >= COMMIT_ROWS or self._bytes >= COMMIT_BYTES

    def take(self) -> Iterator[pa.Table]:
        """Yield the table of the collected rows, if there are any, and clear them."""
        count = self.offset - self._first
        if not count:
            return
        kinds = np.concatenate(self._kinds)
        bounds = np.zeros(count + 1, np.int32)
        np.cumsum(np.concatenate(self._sizes), out=bounds[1:])
        data = np.concatenate(self._data)
        payload = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), pa.py_buffer(data)])
        names = list(self._names)
        columns = {
            "offset": np.arange(self._first, self.offset),
            "epoch": np.full(count, self._epoch, np.int32),
            "timestamp": pa.array(np.concatenate(self._times) * 1000).cast(LOG_SCHEMA.field("timestamp").type),
            "batch": np.concatenate(self._batches),
            "type": pa.array([kind.name for kind in names]).take(pa.array(kinds)),
            "api_key": np.array([kind.api_key for kind in names], np.int16)[kinds],
            "version": np.array([kind.version for kind in names], np.int16)[kinds],
            "control": pa.array(np.zeros(count, bool)),
            "payload": payload,
        }
        yield pa.table([columns[name] for name in LOG_SCHEMA.names], schema=LOG_SCHEMA)
        self._clear()
