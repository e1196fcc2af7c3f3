"""The records of a log with the offset at which each of them takes effect: metadata transactions taken apart.

A record of a metadata transaction (KIP-868) takes effect at the offset of its EndTransactionRecord; those of an aborted
one never do. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np

from kraftlake.records.batch import RecordBatch
from kraftlake.records.batch_values import BatchValues
from kraftlake.records.metadata_records import AbortTransactionRecord, BeginTransactionRecord
from kraftlake.records.no_ops import are_no_ops
from kraftlake.records.serde import AnyMessage, with_short_frame
from kraftlake.replay.loader.record_faults import decode_record
from kraftlake.runtime.errors import KraftlakeError


@attrs.frozen(kw_only=True, eq=False)
class ShardRecords:
    """Records in offset order, of batches that are known as a whole though some of their records are not among these.

    Record i stands at `offsets[i]` (int64); the values, of `sizes` (int32) bytes, lie back to back in `data` (uint8).
    By batch, in order, `base_offsets` and `last_offsets` (int64), `epochs` (int32) and `timestamps` (int64, the largest
    of their records', epoch ms, -1 for none); `noop` (bool) is true where all records of a batch, these or not, are
    no-op records. There may be batches of which none of the records are here. `control` are the batches of control
    records, which are not among the records.
    """

    offsets: Any = attrs.field(repr=False)
    data: Any = attrs.field(repr=False)
    sizes: Any = attrs.field(repr=False)
    base_offsets: Any = attrs.field(repr=False)
    last_offsets: Any = attrs.field(repr=False)
    epochs: Any = attrs.field(repr=False)
    timestamps: Any = attrs.field(repr=False)
    noop: Any = attrs.field(repr=False)
    control: tuple[RecordBatch, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def base_offset(self) -> int:
        """The first offset of the first batch."""
        return int(self.base_offsets[0])


LogPart: TypeAlias = BatchValues | RecordBatch | ShardRecords
"""Records of a log with their batches."""
_KINDS: Final = 128
UNKNOWN_KIND: Final = -1
"""The kind of a record whose frame is not the three plain bytes that all of Kafka's have so far."""


@attrs.frozen(kw_only=True, eq=False)
class EffectiveRecords:
    """Records in the order of the log that take effect.

    Record i has the value data[starts[i]:stops[i]] (uint8; int64), stands at `offsets[i]` in the log and takes effect
    at `effective[i]` and `times[i]` (the batch time of that offset, epoch ms, -1 for none); `kinds[i]` is its api key.
    """

    data: Any = attrs.field(repr=False)
    starts: Any = attrs.field(repr=False)
    stops: Any = attrs.field(repr=False)
    kinds: Any
    offsets: Any
    effective: Any
    times: Any

    def are_of(self, kinds: Iterable[int]) -> Any:
        """A mask (bool) of the records of some kinds."""
        wanted = np.zeros(_KINDS + 1, np.bool_)  # the last place is that of UNKNOWN_KIND
        wanted[[*kinds]] = True
        return wanted[self.kinds]

    def are_no_ops(self) -> Any:
        """A mask (bool) of the no-op records."""
        return are_no_ops(self.data, self.starts, self.stops)

    def where(self, chosen: Any) -> EffectiveRecords:
        """The records at places that a mask or an array of indices names."""
        return EffectiveRecords(
            data=self.data, **{name: np.ascontiguousarray(getattr(self, name)[chosen]) for name in _BY_RECORD}
        )

    def part(self, first: int, last: int) -> EffectiveRecords:
        """The records [first, last)."""
        return self.where(np.s_[first:last])

    def kept(self) -> EffectiveRecords:
        """The same with a copy of their bytes alone, for they may be held for long."""
        first, last = int(self.starts[0]), int(self.stops[-1])
        return attrs.evolve(
            self, data=self.data[first:last].copy(), starts=self.starts - first, stops=self.stops - first
        )

    def value(self, index: int) -> bytes:
        """One record's value."""
        return self.data[self.starts[index] : self.stops[index]].tobytes()  # type: ignore[no-any-return]

    def message(self, index: int) -> AnyMessage:
        """One record, decoded; CorruptDataError with its offset where it can't be."""
        return decode_record(self.value(index), int(self.offsets[index]))

    def taking_effect(self, offset: int, time: int) -> EffectiveRecords:
        """The same, all of them taking effect at one offset."""
        count = len(self)
        return attrs.evolve(self, effective=np.full(count, offset, np.int64), times=np.full(count, time, np.int64))

    def __len__(self) -> int:
        return len(self.starts)


_BY_RECORD: Final = tuple(field.name for field in attrs.fields(EffectiveRecords) if field.name != "data")


def marks_among(keys: Any) -> Any:
    """The places (int64) of the marks of metadata transactions among the api keys of records."""
    return np.flatnonzero((keys >= BeginTransactionRecord.API_KEY) & (keys <= AbortTransactionRecord.API_KEY))


def in_runs(parts: Iterable[LogPart], *, most: int | None = None) -> Iterator[LogPart]:
    """The same parts, data batches that follow each other without a gap together, at most so many of them.

    What getting the parts raises is raised after those before it.
    """
    run: list[RecordBatch] = []
    fault: KraftlakeError | None = None
    try:
        for part in parts:
            is_data = isinstance(part, RecordBatch) and not part.control
            if run and (not is_data or part.base_offset != run[-1].last_offset + 1):
                yield values_of_batches(run)
                run = []
            if isinstance(part, RecordBatch) and is_data:
                run.append(part)
                if len(run) == most:
                    yield values_of_batches(run)
                    run = []
            else:
                yield part
    except KraftlakeError as error:
        fault = error
    if run:
        yield values_of_batches(run)
    if fault is not None:
        raise fault


def values_of_batches(batches: Sequence[RecordBatch]) -> BatchValues:
    """The values of data batches that follow each other without a gap; at least one."""
    values = [value for batch in batches for value in batch.values]
    lengths = np.array([*map(len, values)], np.int64)
    stops = np.cumsum(lengths)
    ends = [(batch.last_offset, batch.epoch, batch.timestamp, batch.size_in_bytes) for batch in batches]
    last_offsets, epochs, timestamps, sizes = np.array(ends, np.int64).T
    return BatchValues(
        base_offset=batches[0].base_offset,
        data=np.frombuffer(b"".join(values), np.uint8),
        starts=stops - lengths,
        stops=stops,
        times=np.array([time for batch in batches for time in batch.timestamps], np.int64),
        last_offsets=last_offsets,
        epochs=epochs,
        timestamps=timestamps,
        sizes=sizes,
    )


def control_batches(part: LogPart) -> Iterable[RecordBatch]:
    """The control batches of a part."""
    if isinstance(part, RecordBatch):
        return [part] if part.control else []
    return part.control if isinstance(part, ShardRecords) else ()


def standing_alone(part: LogPart) -> EffectiveRecords:
    """The records of a part as if each took effect where it stands, without control records."""
    if isinstance(part, ShardRecords):
        stops = np.cumsum(part.sizes, dtype=np.int64)
        times = part.timestamps[np.searchsorted(part.last_offsets, part.offsets)]
        return records_of(part.data, stops - part.sizes, stops, part.offsets, times)
    if isinstance(part, RecordBatch):
        return NO_RECORDS if part.control else standing_alone(values_of_batches([part]))
    counts = np.diff(part.last_offsets, prepend=part.base_offset - 1)
    offsets = part.base_offset + np.arange(part.record_count, dtype=np.int64)
    return records_of(part.data, part.starts, part.stops, offsets, np.repeat(part.timestamps, counts))


def records_of(data: Any, starts: Any, stops: Any, offsets: Any, times: Any) -> EffectiveRecords:
    """The records with values data[starts[i]:stops[i]] at offsets, as if each took effect where it stands.

    A value whose frame's numbers take more bytes than they need is put behind the data with a short frame.
    """
    kinds = np.full(len(starts), UNKNOWN_KIND, np.int16)
    framed = np.flatnonzero(stops - starts >= 3)
    plain = _are_plain(data, starts[framed])
    if not plain.all():
        odd = framed[~plain]
        values = [with_short_frame(data[starts[place] : stops[place]].tobytes()) for place in odd.tolist()]
        ends = len(data) + np.cumsum([0, *map(len, values)])
        starts, stops = starts.copy(), stops.copy()
        starts[odd], stops[odd] = ends[:-1], ends[1:]
        data = np.concatenate((data, np.frombuffer(b"".join(values), np.uint8)))
        framed = np.flatnonzero(stops - starts >= 3)
        plain = _are_plain(data, starts[framed])
    kinds[framed[plain]] = data[starts[framed[plain]] + 1]
    return EffectiveRecords(
        data=data, starts=starts, stops=stops, kinds=kinds, offsets=offsets, effective=offsets, times=times
    )


def _are_plain(data: Any, heads: Any) -> Any:
    return (data[heads] == 1) & (data[heads + 1] < 0x80) & (data[heads + 2] < 0x80)


def joined(pieces: list[EffectiveRecords]) -> EffectiveRecords:
    """The records of pieces that follow each other; at least one. Bytes that several of them share are there once."""
    if len(pieces) == 1:
        return pieces[0]
    data = [*{id(piece.data): piece.data for piece in pieces}.values()]
    begins = dict(zip(map(id, data), np.cumsum([0, *map(len, data)]).tolist(), strict=False))
    shifts = [begins[id(piece.data)] for piece in pieces]
    columns = {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _BY_RECORD}
    for name in ("starts", "stops"):
        columns[name] += np.repeat(shifts, [*map(len, pieces)])
    return EffectiveRecords(data=data[0] if len(data) == 1 else np.concatenate(data), **columns)


NO_RECORDS: Final = records_of(np.empty(0, np.uint8), *np.empty((4, 0), np.int64))
