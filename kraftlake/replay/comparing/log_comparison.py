"""Compares two metadata logs by their batches: the common offsets, the parting, the records of only one of them.

Epochs and ends alone show nothing of two logs: a second quorum beside the first begins with the same epochs. Two logs
are one if all offsets that both have are the same batches, in epoch, times and bytes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import attrs

from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.replay.comparing.exclusive_records import ExclusiveRecords, held_alone
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.replay.reading.open_reader import LogReader
from kraftlake.replay.reading.replay_base import usable_snapshots

_CRC: Final = slice(17, 21)
_Steps: TypeAlias = Iterator[tuple[int, int, tuple[RecordBatch, RecordBatch] | None]]


class Relation(enum.Enum):
    """The relation of two logs."""

    SAME = "same"
    """One log, with the same end."""
    PREFIX = "prefix"
    """One log; one of the two copies goes further."""
    PARTED = "parted"
    """Two logs: from an offset on they have different batches."""
    CHANGED = "changed"
    """Logs that differ only in the middle: one of them was changed after it was written."""
    UNKNOWN = "unknown"
    """Logs without a common offset, so that nothing shows whether they are one log."""


class Difference(enum.Enum):
    """The kind of the first difference between two logs."""

    EPOCH = "another epoch"
    TYPE = "other record types"
    BYTES = "other bytes"
    TIMESTAMP = "another timestamp"
    BATCH = "the batch ends there in one of them only"
    """The same records with another division into batches."""


@attrs.frozen(kw_only=True)
class BatchMark:
    """The identity of a batch; `crc` is its CRC-32C in Kafka's file without compression."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp: int
    crc: int

    @classmethod
    def of(cls, batch: RecordBatch) -> BatchMark:
        """The mark of a batch."""
        return cls(
            base_offset=batch.base_offset,
            last_offset=batch.last_offset,
            epoch=batch.epoch,
            timestamp=batch.timestamp,
            crc=int.from_bytes(encode_batch(batch)[_CRC], "big"),
        )

    def to_json(self) -> dict[str, Any]:
        """The batch by its last offset; the CRC in hexadecimal digits."""
        known = None if self.timestamp < 0 else self.timestamp
        return {"offset": self.last_offset, "epoch": self.epoch, "timestamp": known, "crc": f"{self.crc:08x}"}


@attrs.frozen(kw_only=True)
class LogComparison:
    """The comparison of two logs, which both have the offsets [first, end), none where `end` is not above `first`.

    `parts_at` is the first offset that differs, None where none does, and `difference` the kind of difference;
    `differing` are the two batches there. `or_before` says that only a snapshot's epoch shows the difference, so that
    the logs may part before. `last_common` is the batch before it, or the last one that both have. `same_again_at` is
    the offset after it from which on both have the same batches again. `alone` are the records of each log from there
    on that the other lacks, None for nothing. `divided_at` is the first offset at which a batch ends in one of them
    only.
    """

    first: int
    end: int
    ends: tuple[int, int]
    parts_at: int | None = None
    difference: Difference | None = None
    differing: tuple[BatchMark, BatchMark] | None = None
    or_before: bool = False
    last_common: BatchMark | None = None
    same_again_at: int | None = None
    alone: tuple[ExclusiveRecords | None, ExclusiveRecords | None] = (None, None)
    divided_at: int | None = None

    @property
    def relation(self) -> Relation:
        """The relation of the two logs."""
        if self.parts_at is not None:
            return Relation.PARTED if self.same_again_at is None else Relation.CHANGED
        if self.end <= self.first:
            return Relation.UNKNOWN
        return Relation.SAME if self.ends[0] == self.ends[1] else Relation.PREFIX

    @property
    def differs(self) -> bool:
        """Whether the logs are certainly not one log."""
        return self.parts_at is not None

    def to_json(self) -> dict[str, Any]:
        """The comparison in JSON; offsets are inclusive, and null for none."""
        common = self.last_common
        return {
            "relation": self.relation.value,
            "firstCommonOffset": None if common is None else self.first,
            "lastCommon": None if common is None else common.to_json(),
            "partsAt": self.parts_at,
            "difference": None if self.difference is None else self.difference.value,
            "sameAgainAt": self.same_again_at,
            "differing": None if self.differing is None else [mark.to_json() for mark in self.differing],
            "alone": [None if one is None else one.to_json() for one in self.alone],
        }


def compare_logs(one: LogReader, other: LogReader, *, ends: tuple[int, int] | None = None) -> LogComparison:
    """Compare all offsets that both logs have, and read the rest of two that differ; each up to its end in `ends`.

    Raises the errors of reading the logs.
    """
    ends = (one.end_offset, other.end_offset) if ends is None else ends
    first = max(one.start_offset, other.start_offset)
    end = min(*ends, one.end_offset, other.end_offset)
    found = LogComparison(first=first, end=end, ends=ends)
    if end <= first:
        return _by_snapshots(found, one, other)
    if one is not other:
        found = _compared(found, one, other)
    agreed = end if found.parts_at is None else found.parts_at
    if agreed > first:
        found = attrs.evolve(found, last_common=_mark(one, agreed - 1))
    if found.parts_at is None:
        return found
    stops = ends if found.same_again_at is None else (found.same_again_at,) * 2
    here, there = (
        held_alone(log, agreed, min(stop, log.end_offset)) for log, stop in zip((one, other), stops, strict=True)
    )
    return attrs.evolve(found, alone=(here, there))


def _compared(found: LogComparison, one: LogReader, other: LogReader) -> LogComparison:
    steps = _steps(one, other, found.first, found.end)
    divided: int | None = None
    for offset, stop, batches in steps:
        if batches is None:
            continue
        here, there = batches
        if here.base_offset != there.base_offset and offset == found.first:
            divided = offset
        differs = _difference(here, there, offset, stop)
        if differs is not None:
            break
        if here.last_offset != there.last_offset and divided is None:
            divided = stop
    else:
        return attrs.evolve(found, divided_at=divided)
    again = None
    if found.end > stop and _is_same_at(one, other, found.end - 1):
        again = _same_again_at(steps, leaders_differ=here.control or there.control)
    return attrs.evolve(
        found,
        parts_at=differs[0],
        difference=differs[1],
        differing=(BatchMark.of(here), BatchMark.of(there)),
        same_again_at=again,
        divided_at=divided,
    )


def _same_again_at(steps: _Steps, *, leaders_differ: bool) -> int | None:
    """The offset from which all further steps are the same; None for no such offset, or where chance may explain it.

    Two quorums may have the same no-ops. Where their leaders differ, only a later leader in common shows one quorum.
    """
    again: int | None = None
    for offset, stop, batches in steps:
        if batches is None or _difference(*batches, offset, stop) is None:
            again = offset if again is None else again
            leaders_differ = leaders_differ and (batches is None or not batches[0].control)
        elif again is not None:
            return None
        else:
            leaders_differ = leaders_differ or batches[0].control or batches[1].control
    return None if leaders_differ else again


def _steps(one: LogReader, other: LogReader, first: int, end: int) -> _Steps:
    """Offsets [from, to), in order, with the batch of each log that holds them; None for many equal batches."""
    here, there = (_Cursor(log, first, end) for log in (one, other))
    offset = unequal_to = first
    while offset < end:
        left, right = here.chunk_at(offset), there.chunk_at(offset)
        if not isinstance(left, RecordBatch) and not isinstance(right, RecordBatch) and offset >= unequal_to:
            stop = min(left.last_offset, right.last_offset) + 1
            if left.has_same_batches(right, offset, stop):
                yield offset, stop, None
                offset = stop
                continue
            unequal_to = stop
        batches = here.batch_at(offset), there.batch_at(offset)
        stop = min(batch.last_offset for batch in batches) + 1
        yield offset, stop, batches
        offset = stop


class _Cursor:
    """A log that is read forwards, in chunks of their own length, or batch by batch."""

    def __init__(self, log: LogReader, first: int, end: int) -> None:
        self._chunks = chunks_of(log, first, end - 1)
        self._chunk: Chunk | None = None
        self._batches: Iterator[RecordBatch] = iter(())
        self._batch: RecordBatch | None = None

    def chunk_at(self, offset: int) -> Chunk:
        """The chunk that holds an offset."""
        while self._chunk is None or self._chunk.last_offset < offset:
            self._chunk, self._batches, self._batch = next(self._chunks), iter(()), None
        return self._chunk

    def batch_at(self, offset: int) -> RecordBatch:
        """The batch that holds an offset."""
        chunk = self.chunk_at(offset)
        if isinstance(chunk, RecordBatch):
            return chunk
        if self._batch is None:
            self._batches = chunk.batches(offset)
        while self._batch is None or self._batch.last_offset < offset:
            self._batch = next(self._batches)
        return self._batch


def _difference(one: RecordBatch, other: RecordBatch, first: int, stop: int) -> tuple[int, Difference] | None:
    """The first offset of [first, stop) in which two batches that hold these differ, and the kind; None if none."""
    if one.epoch != other.epoch:
        return first, Difference.EPOCH
    if one.control != other.control:
        return first, Difference.TYPE
    for offset in range(first, stop):
        here, there = offset - one.base_offset, offset - other.base_offset
        if one.control and one.control_types[here] != other.control_types[there]:
            return offset, Difference.TYPE
        if one.values[here] != other.values[there]:
            return offset, Difference.BYTES
        if one.timestamps[here] != other.timestamps[there]:
            return offset, Difference.TIMESTAMP
    return None


def _is_same_at(one: LogReader, other: LogReader, offset: int) -> bool:
    here, there = (next(log.batches(offset, offset)) for log in (one, other))
    return _difference(here, there, offset, offset + 1) is None


def _mark(log: LogReader, offset: int) -> BatchMark:
    return BatchMark.of(next(log.batches(offset, offset)))


def _by_snapshots(found: LogComparison, one: LogReader, other: LogReader) -> LogComparison:
    """A comparison of logs without a common offset: a snapshot of one has the epoch of an offset of the other."""
    for snapshots, log in ((one, other), (other, one)):
        for snapshot in usable_snapshots(snapshots):
            offset = snapshot.end_offset - 1
            if not log.start_offset <= offset < log.end_offset:
                continue
            if next(log.batches(offset, offset)).epoch != snapshot.epoch:
                here, there = (held_alone(each, each.start_offset, each.end_offset) for each in (one, other))
                return attrs.evolve(
                    found, parts_at=offset, difference=Difference.EPOCH, or_before=True, alone=(here, there)
                )
    return found
