"""The batches of a KRaft snapshot: header, the records of an image in batches with Kafka's boundaries, footer.

Source: org.apache.kafka.snapshot.RecordsSnapshotWriter and org.apache.kafka.raft.internals.BatchAccumulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kraftlake.records.encoded_values import EncodedValues
from kraftlake.records.schema import Message
from kraftlake.records.serde import ApiMessageAndVersion, encode_value

if TYPE_CHECKING:
    from kraftlake.records.batch_values import BatchValues

MAX_RECORDS_IN_BATCH = 1024
MAX_BYTES_IN_BATCH = 8 * 1024 * 1024 - 61
"""Kafka's limit without the batch header; Kafka fails to write a snapshot whose next 1,024 records are larger."""
RECORD_OVERHEAD = 24
"""An upper bound for the size of a record's length, attributes, deltas and counts."""


def checkpoint_batches(
    records: Iterable[ApiMessageAndVersion | EncodedValues],
    *,
    epoch: int,
    timestamp: int,
    kraft_version: int = 0,
    voters: VotersRecord | None = None,
) -> Iterator[RecordBatch | BatchValues]:
    """Yield the batches of a snapshot of `records`, with offsets from 0 on.

    The arguments are those of `write_checkpoint`. If values are already encoded, whole batches of them stay together as
    BatchValues.
    """
    head = head_batch(epoch, timestamp, kraft_version, voters)
    yield head
    data = _DataBatches(head.last_offset + 1, epoch, timestamp)
    for record in records:
        if isinstance(record, EncodedValues):
            yield from data.take_many(record)
        else:
            yield from data.take(encode_value(record.message, record.version))
    yield from data.close()
    yield footer_batch(data.offset, epoch, timestamp)


def head_batch(epoch: int, timestamp: int, kraft_version: int, voters: VotersRecord | None) -> RecordBatch:
    """Return the control batch at offset 0: the header, and from kraft.version 1 on that version and the voters."""
    head: list[Message] = [SnapshotHeaderRecord(last_contained_log_timestamp=timestamp)]
    if kraft_version >= 1:
        head.append(KRaftVersionRecord(k_raft_version=kraft_version))
        if voters is not None:
            head.append(voters)
    return RecordBatch.control_of(0, epoch, timestamp, head)


def footer_batch(offset: int, epoch: int, timestamp: int) -> RecordBatch:
    """Return the control batch that ends a snapshot."""
    return RecordBatch.control_of(offset, epoch, timestamp, [SnapshotFooterRecord()])


class BatchCutter:
    """Decides the boundaries of batches: before the record that would exceed the limit of records or of bytes."""

    def __init__(self, records: int = 0, size: int = 0) -> None:
        self.records = records
        """The number of records of the open batch."""
        self.size = size
        """An upper bound for the size of the open batch's records in bytes."""

    def begins(self, value_size: int) -> bool:
        """Count the next record, with a value of `value_size` bytes; returns whether it begins a batch."""
        return bool(self.beginnings((value_size,)))

    def beginnings(self, value_sizes: Sequence[int]) -> list[int]:
        """Count the next records, with values of these sizes in bytes.

        Returns the indices of those that begin a batch.
        """
        most = max(value_sizes, default=0) + RECORD_OVERHEAD
        if self.size + most * MAX_RECORDS_IN_BATCH <= MAX_BYTES_IN_BATCH:  # no batch has too many bytes
            room = MAX_RECORDS_IN_BATCH - self.records if self.records else 0
            begins = [*range(room, len(value_sizes), MAX_RECORDS_IN_BATCH)]
            if begins:
                self.records = self.size = 0
            last = value_sizes[begins[-1] if begins else 0 :]
            self.records += len(last)
            self.size += sum(last) + RECORD_OVERHEAD * len(last)
            return begins
        found: list[int] = []
        records, size = self.records, self.size
        for index, value_size in enumerate(value_sizes):
            taken = value_size + RECORD_OVERHEAD
            if not records or records == MAX_RECORDS_IN_BATCH or size + taken > MAX_BYTES_IN_BATCH:
                found.append(index)
                records = size = 0
            records += 1
            size += taken
        self.records, self.size = records, size
        return found


class _DataBatches:
    """Cuts values, one by one or in bulk, into batches; `offset` is the next record's."""

    def __init__(self, offset: int, epoch: int, timestamp: int) -> None:
        self.offset = offset
        self._epoch = epoch
        self._timestamp = timestamp
        self._cutter = BatchCutter()
        self._open: list[bytes] = []

    def take(self, value: bytes) -> Iterator[RecordBatch]:
        """Add a value; yields the batch that is then complete."""
        if self._cutter.begins(len(value)):
            yield from self.close()
        self._open.append(value)
        self.offset += 1

    def take_many(self, values: EncodedValues) -> Iterator[RecordBatch | BatchValues]:
        """Add many values; yields the complete batches."""
        import numpy as np

        held, self._open = self._open, []
        self.offset -= len(held)
        data = np.concatenate((np.frombuffer(b"".join(held), np.uint8), values.data))
        sizes = np.concatenate((np.array([*map(len, held)], np.int64), values.sizes))
        begins = [begin + len(held) for begin in self._cutter.beginnings(values.sizes.tolist())]
        ends = np.array(begins[1:] if not held else begins, np.int64)
        bounds = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        last = int(ends[-1]) if len(ends) else 0
        if last:
            yield self._whole_batches(data, bounds[: last + 1], ends)
        self._extend(data, bounds[last:])

    def close(self) -> Iterator[RecordBatch]:
        """Yield the open batch, if any."""
        if self._open:
            yield RecordBatch(
                base_offset=self.offset - len(self._open),
                epoch=self._epoch,
                timestamp=self._timestamp,
                values=tuple(self._open),
                timestamps=(self._timestamp,) * len(self._open),
            )
            self._open = []

    def _extend(self, data: Any, bounds: Any) -> None:
        places = bounds.tolist()
        self._open += [data[start:stop].tobytes() for start, stop in pairwise(places)]
        self.offset += len(places) - 1

    def _whole_batches(self, data: Any, bounds: Any, ends: Any) -> BatchValues:
        """Yield whole batches of the values between `bounds`.

        `ends` are the numbers of values before each batch's end.
        """
        import numpy as np

        from kraftlake.records.batch_values import BatchValues

        count, batches = len(bounds) - 1, len(ends)
        values = BatchValues(
            base_offset=self.offset,
            data=data,
            starts=bounds[:-1].copy(),
            stops=bounds[1:].copy(),
            times=np.full(count, self._timestamp, np.int64),
            last_offsets=self.offset + ends - 1,
            epochs=np.full(batches, self._epoch, np.int64),
            timestamps=np.full(batches, self._timestamp, np.int64),
            sizes=np.zeros(batches, np.int64),
        )
        self.offset += count
        return values
