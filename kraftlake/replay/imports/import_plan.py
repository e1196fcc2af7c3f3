"""What an import will do, found by reading the whole source first, so that a refused import has written nothing."""

from __future__ import annotations

from itertools import pairwise

import attrs

from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import read_frame
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.replay.reading.log_reader import LogReader, SnapshotReader
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.replay.reading.progress import Progress, no_progress
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.errors import CorruptDataError, ImportConflictError

PROGRESS_RECORDS = 1_000
"""The number of records between two reports of progress."""


@attrs.frozen(kw_only=True)
class ImportPlan:
    """The offsets [from_offset, to_offset) of the source are new to the lake, and so are `snapshots`.

    `already_there` counts the offsets that both hold with the same content; `before_lake` the source's offsets below
    the lake's start, which can't be added. `records` and `batches` count what is new.
    """

    from_offset: int
    to_offset: int
    records: int
    batches: int
    already_there: int
    before_lake: int
    snapshots: tuple[SnapshotReader, ...]


def plan_import(source: LogReader, lake: LakeReader | None, progress: Progress = no_progress) -> ImportPlan:
    """Read the whole source, compare what the lake has of it already, and say what is new.

    `lake` is None where there is none yet. Raises ImportConflictError naming the first offset that disagrees and on
    which side of the lake's `committed_to` it lies, or the offsets that are missing in between; CorruptDataError for a
    source that is unsound itself. Memory is bounded by the largest batch.
    """
    if lake is not None:
        _check_touching(source, lake)
    _check_duplicates(source)
    snapshots = _new_snapshots(source, lake)
    ends = {s.end_offset - 1: s for s in usable_snapshots(source)}
    new = batches = already = before = 0
    comparison = None if lake is None else _Comparison(source, lake)
    lake_epoch = -1 if lake is None else lake.log.epoch

    def add_new(chunk: Chunk) -> None:
        nonlocal new, batches
        if not new and chunk.epoch < lake_epoch:
            raise ImportConflictError(
                f"{source.name} has epoch {chunk.epoch} at offset {chunk.base_offset}, but the lake has epoch "
                f"{lake_epoch} before it already: this is another cluster's log, or corruption."
            )
        _check_frames(chunk)
        new += chunk.record_count
        batches += 1 if isinstance(chunk, RecordBatch) else chunk.batch_count

    reported = source.start_offset
    for chunk in chunks_of(source, source.start_offset, source.end_offset - 1):
        _check_snapshot_epochs(chunk, ends)
        if comparison is None or chunk.base_offset >= comparison.end:
            add_new(chunk)
        else:
            for batch in [chunk] if isinstance(chunk, RecordBatch) else chunk.batches(chunk.base_offset):
                if batch.last_offset < comparison.first:
                    before += batch.record_count
                elif batch.base_offset < comparison.end:
                    comparison.compare(batch)
                    already += batch.record_count
                else:
                    add_new(batch)
        if chunk.last_offset + 1 - reported >= PROGRESS_RECORDS or chunk.last_offset + 1 == source.end_offset:
            reported = chunk.last_offset + 1
            progress("checking", reported - source.start_offset, source.end_offset - source.start_offset)
    for snapshot in snapshots:
        for batch in snapshot.batches():
            _check_frames(batch, snapshot.name)
    from_offset = source.start_offset if lake is None else lake.end_offset
    return ImportPlan(
        from_offset=from_offset,
        to_offset=from_offset + new,
        records=new,
        batches=batches,
        already_there=already,
        before_lake=before,
        snapshots=snapshots,
    )


def _check_touching(source: LogReader, lake: LogReader) -> None:
    if source.start_offset > lake.end_offset:
        raise ImportConflictError(
            f"The lake {lake.name} ends at offset {lake.end_offset - 1} and {source.name} starts at offset "
            f"{source.start_offset}: offsets {lake.end_offset} to {source.start_offset - 1} are missing. "
            "Import a source that holds them first."
        )
    if source.end_offset <= lake.start_offset and source.start_offset < lake.start_offset:
        raise ImportConflictError(
            f"{source.name} ends at offset {source.end_offset - 1}, before the lake {lake.name} starts at offset "
            f"{lake.start_offset}: nothing can be put before a lake's start. Import it into a new lake."
        )


def _check_duplicates(source: LogReader) -> None:
    for one, other in pairwise(usable_snapshots(source)):
        if one.end_offset == other.end_offset:
            raise CorruptDataError(
                f"{source.name} has two snapshots of the offsets below {one.end_offset}, {one.name} and {other.name}: "
                "remove the one that is not of this log."
            )


def _new_snapshots(source: LogReader, lake: LogReader | None) -> tuple[SnapshotReader, ...]:
    """The finished snapshots that images can be built on, but for those that the lake has."""
    start = source.start_offset if lake is None else max(source.start_offset, lake.start_offset)
    there = {} if lake is None else {s.end_offset: s for s in usable_snapshots(lake)}
    new = []
    for snapshot in usable_snapshots(source):
        same = there.get(snapshot.end_offset)
        if same is not None and same.epoch != snapshot.epoch:
            raise ImportConflictError(
                f"The snapshot of the offsets below {snapshot.end_offset} is of epoch {snapshot.epoch} in "
                f"{source.name}, but of epoch {same.epoch} in the lake: this is another cluster, or corruption."
            )
        if same is None and snapshot.end_offset >= start:
            new.append(snapshot)
    return tuple(new)


def _check_snapshot_epochs(chunk: Chunk, ends: dict[int, SnapshotReader]) -> None:
    for offset in [offset for offset in ends if chunk.base_offset <= offset <= chunk.last_offset]:
        snapshot = ends.pop(offset)
        epoch = chunk.epoch if isinstance(chunk, RecordBatch) else chunk.end_at(offset).epoch
        if snapshot.epoch != epoch:
            raise CorruptDataError(
                f"{snapshot.name} says that offset {offset} is of epoch {snapshot.epoch}, but the log has it in epoch "
                f"{epoch}: they don't belong together."
            )


def _check_frames(chunk: Chunk, snapshot: str | None = None) -> None:
    if not isinstance(chunk, RecordBatch):
        from kraftlake.records.value_columns import has_plain_frames

        if not has_plain_frames(chunk):
            for batch in chunk.batches(chunk.base_offset):
                _check_frames(batch, snapshot)
        return
    if chunk.control:
        return
    for offset, value in enumerate(chunk.values, start=chunk.base_offset):
        try:
            read_frame(value)
        except CorruptDataError as error:
            where = "" if snapshot is None else f" of snapshot {snapshot}"
            raise CorruptDataError(f"The record at offset {offset}{where} is no metadata record: {error}") from error


class _Comparison:
    """The comparison of source and lake over the offsets that both have."""

    def __init__(self, source: LogReader, lake: LakeReader) -> None:
        self.first = max(source.start_offset, lake.start_offset)
        self.end = lake.end_offset
        self._names = (source.name, lake.name)
        self._committed_to = lake.log.committed_to
        last = min(source.end_offset, lake.end_offset) - 1
        self._lake = lake.batches(self.first, last)

    def compare(self, batch: RecordBatch) -> None:
        """Raise ImportConflictError unless the lake's next batch is this one."""
        other = next(self._lake)
        found = _disagreement(batch, other)
        if found is None:
            return
        offset, what = found
        known = offset < self._committed_to or (offset == self._committed_to and other.control)
        why = (
            f"it is at or below {self._committed_to}, up to where the lake's log is known to be committed, so this is "
            "another cluster's log, or corruption"
            if known
            else f"it is above {self._committed_to}, up to where the lake's log is known to be committed: this tail of "
            "the lake was never known to be committed, and a new leader may have replaced it"
        )
        source, lake = self._names
        raise ImportConflictError(f"{source} disagrees with the lake {lake} at offset {offset} ({what}); {why}.")


def _disagreement(source: RecordBatch, lake: RecordBatch) -> tuple[int, str] | None:
    """The first offset in which two batches differ, and how; None when they are the same."""
    if source.base_offset != lake.base_offset:
        return max(source.base_offset, lake.base_offset), "a batch begins there in one of them only"
    base = source.base_offset
    if source.epoch != lake.epoch:
        return base, f"epoch {source.epoch} in the source, epoch {lake.epoch} in the lake"
    if source.control != lake.control or source.control_types[:1] != lake.control_types[:1]:
        return base, "other record types"
    for index in range(min(source.record_count, lake.record_count)):
        if source.values[index] != lake.values[index] or (
            source.control and source.control_types[index] != lake.control_types[index]
        ):
            return base + index, "other bytes"
        if source.timestamps[index] != lake.timestamps[index]:
            return base + index, "another timestamp"
    if source.record_count != lake.record_count:
        return base + min(source.record_count, lake.record_count), "the batch ends there in one of them only"
    return None
