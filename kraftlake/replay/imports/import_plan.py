"""The plan of an import, found by reading the whole source first, so that a refused import has written nothing."""

from __future__ import annotations

from itertools import pairwise

import attrs

from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import read_frame
from kraftlake.replay.comparing.log_comparison import Difference, LogComparison, Relation, compare_logs
from kraftlake.replay.comparing.words import difference_words, held_words
from kraftlake.replay.reading.chunks import Chunk, chunks_of
from kraftlake.replay.reading.open_reader import LakeReader, LogReader, SnapshotReader
from kraftlake.replay.reading.progress import Progress, no_progress
from kraftlake.replay.reading.replay_base import usable_snapshots
from kraftlake.runtime.errors import CorruptDataError, ImportConflictError

PROGRESS_RECORDS = 1_000
"""The number of records between two reports of progress."""


@attrs.frozen(kw_only=True)
class ImportPlan:
    """The plan: the offsets [from_offset, to_offset) of the source and `snapshots` are new to the lake.

    `already_there` counts the offsets that both hold with the same content; `before_lake` the source's offsets below
    the lake's start, which can't be added. `records` and `batches` count the new ones.
    """

    from_offset: int
    to_offset: int
    records: int
    batches: int
    already_there: int
    before_lake: int
    snapshots: tuple[SnapshotReader, ...]


def plan_import(source: LogReader, lake: LakeReader | None, progress: Progress = no_progress) -> ImportPlan:
    """Read the source from the lake's start on, compare the offsets that the lake has, and return the new ones.

    `lake` is None where there is none yet. Raises ImportConflictError naming the first offset that disagrees and the
    records of only one side from there on, or the offsets that are missing in between; CorruptDataError for a source
    that is unsound itself. Memory is bounded by the largest chunk.
    """
    if lake is not None:
        _check_touching(source, lake)
    _check_duplicates(source)
    snapshots = _new_snapshots(source, lake)
    there = range(0) if lake is None else range(lake.start_offset, lake.end_offset)
    if lake is not None:
        _check_same(source, lake)
    _check_snapshot_epochs(source)
    new = batches = 0
    start, reported = source.start_offset, max(source.start_offset, there.stop)
    for chunk in chunks_of(source, reported, source.end_offset - 1):
        if lake is not None and not new and chunk.epoch < lake.log.epoch:
            raise ImportConflictError(
                f"{source.name} has epoch {chunk.epoch} at offset {chunk.base_offset}, but the lake has epoch "
                f"{lake.log.epoch} before it already: they are two histories, or one is damaged."
            )
        _check_frames(chunk)
        new += chunk.record_count
        batches += 1 if isinstance(chunk, RecordBatch) else chunk.batch_count
        if chunk.last_offset + 1 - reported >= PROGRESS_RECORDS or chunk.last_offset + 1 == source.end_offset:
            reported = chunk.last_offset + 1
            progress("checking", reported - start, source.end_offset - start)
    for snapshot in snapshots:
        for batch in snapshot.batches():
            _check_frames(batch, snapshot.name)
    from_offset = source.start_offset if lake is None else lake.end_offset
    return ImportPlan(
        from_offset=from_offset,
        to_offset=from_offset + new,
        records=new,
        batches=batches,
        already_there=max(0, min(source.end_offset, there.stop) - max(start, there.start)),
        before_lake=max(0, there.start - start),
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
    """The finished snapshots that images can be built on, without those that the lake has."""
    start = source.start_offset if lake is None else max(source.start_offset, lake.start_offset)
    there = {} if lake is None else {s.end_offset: s for s in usable_snapshots(lake)}
    new = []
    for snapshot in usable_snapshots(source):
        same = there.get(snapshot.end_offset)
        if same is not None and same.epoch != snapshot.epoch:
            raise ImportConflictError(
                f"The snapshot of the offsets below {snapshot.end_offset} is of epoch {snapshot.epoch} in "
                f"{source.name}, but of epoch {same.epoch} in the lake: they are two histories, or one is damaged."
            )
        if same is None and snapshot.end_offset >= start:
            new.append(snapshot)
    return tuple(new)


def _check_snapshot_epochs(source: LogReader) -> None:
    for snapshot in usable_snapshots(source):
        offset = snapshot.end_offset - 1
        if not source.start_offset <= offset < source.end_offset:
            continue
        epoch = next(iter(source.batches(offset, offset))).epoch
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


def _check_same(source: LogReader, lake: LakeReader) -> None:
    """Raise ImportConflictError where the offsets that both have are not the same."""
    found = compare_logs(source, lake)
    offset = found.parts_at
    if found.divided_at is not None and (offset is None or found.divided_at < offset):
        offset, what = found.divided_at, Difference.BATCH.value
    elif offset is None:
        return
    else:
        what = difference_words(found, "the source", "the lake")
    conflict = f"{source.name} disagrees with the lake {lake.name} at offset {offset} ({what})"
    raise ImportConflictError(f"{conflict}; {_meaning(found, lake)}.")


def _meaning(found: LogComparison, lake: LakeReader) -> str:
    """The meaning of a disagreement, as far as the two logs show it, and a remedy."""
    if found.parts_at is None:
        return "their records are the same, but they are divided into other batches, which an import can't mend"
    if found.relation is Relation.CHANGED:
        return (
            f"they are the same again from offset {found.same_again_at} on, so one of them was changed after it was "
            f"written: `kraftlake verify {lake.name}` checks the lake by its chain of hashes"
        )
    last = found.last_common
    common = "no batch in common" if last is None else f"the same batches up to offset {last.last_offset}"
    sides = [
        f"{name} alone has {held_words(found, one)}"
        for name, one in zip(("the source", "the lake"), found.alone, strict=True)
        if one is not None
    ]
    here, there = (one is not None and one.shows_commit for one in found.alone)
    deposed = "the lake may end with what a deposed leader wrote; " if here and not there else ""
    advice = (
        "keep both until it is known which one brokers follow: `kraftlake quorum` with both shows whose each is, and a "
        "lake of its own takes the source"
    )
    return f"from there on they are two histories, with {common}: {', and '.join(sides)}; {deposed}{advice}"
