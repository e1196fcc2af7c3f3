"""The offset at a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.open_reader import LakeReader, LogReader
from kraftlake.replay.reading.replay_base import check_unbroken, images_end, readable_batches, usable_snapshots
from kraftlake.runtime.errors import CorruptDataError, OffsetError
from kraftlake.runtime.moments import EPOCH, iso


def epoch_millis(time: datetime) -> int:
    """Epoch milliseconds of a datetime, rounded down; one without a zone is UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(milliseconds=1)


def offset_at(reader: LogReader, time: datetime) -> int:
    """The last offset whose batch time is at or before `time`.

    Snapshots count as well: the last offset of a snapshot has the time in its header. Batches without a time are
    ignored. Raises OffsetError, naming the first time, when all times are later, and where the log has a gap between
    the offset and the later known ones, and BrokenFileError where the next offset is missing or damaged: the batches
    there may also be from before `time`.
    """
    wanted = epoch_millis(time)
    in_snapshots = {offset: millis for offset, millis in _snapshot_times(reader) if millis <= wanted}
    found = max([_offset_in_log(reader, wanted), *in_snapshots])
    if found >= 0:
        _check_known(reader, found + 1)
        _check_goes_on(reader, found, in_snapshots.get(found), wanted)
        return found
    times = [millis for _, millis in (*_snapshot_times(reader), *_batch_times(reader))]
    if not times:
        raise OffsetError(f"{reader.name} holds no batch with a time, so it has no image at a time.")
    raise OffsetError(
        f"The first batch of {reader.name} is of {_iso(min(times))}, which is after the time asked for, {_iso(wanted)}."
    )


def offset_since(reader: LogReader, time: datetime) -> int:
    """The offset after the last one whose batch time is before `time`; the log's first where none is.

    Together with `offset_at` it cuts a log in two at any time. Where the log ends with batches from before `time`,
    though earlier batches have later times (clocks ran backwards), the result is the first offset with a later time.
    Raises OffsetError, naming the last time, when all times are earlier, and BrokenFileError where the offset is
    missing or damaged.
    """
    before = epoch_millis(time - timedelta(microseconds=1))
    found = _offset_in_log(reader, before) + 1
    _check_known(reader, found)
    if found > 0 and reader.start_offset <= found < reader.end_offset:
        return found
    last, previous = -1, reader.start_offset - 1
    for offset, millis in _batch_times(reader):
        if millis > before:
            return previous + 1
        last, previous = max(last, millis), offset
    if last < 0:
        raise OffsetError(f"{reader.name} holds no batch with a time, so nothing in it is since a time.")
    raise OffsetError(
        f"The last batch of {reader.name} is of {_iso(last)}, which is before the time asked for, {_iso(before + 1)}."
    )


def last_time(reader: LogReader) -> datetime | None:
    """The time of the last offset, of the log or of a snapshot that is ahead of it; None where it has none."""
    times = dict(_snapshot_times(reader))
    if reader.end_offset > reader.start_offset:
        times |= {batch.last_offset: batch.timestamp for batch in reader.batches(reader.end_offset - 1)}
    millis = times.get(images_end(reader) - 1, -1)
    try:
        return None if millis < 0 else EPOCH + timedelta(milliseconds=millis)
    except OverflowError:  # later than the largest datetime
        return None


def _iso(millis: int) -> str:
    return iso(EPOCH + timedelta(milliseconds=millis))


def _offset_in_log(reader: LogReader, wanted: int) -> int:
    if isinstance(reader, LakeReader):
        try:
            return reader.log.offset_at_time(wanted)
        except OffsetError:
            return -1
    return max((offset for offset, millis in _batch_times(reader) if millis <= wanted), default=-1)


def _snapshot_times(reader: LogReader) -> Iterator[tuple[int, int]]:
    times = ((s.end_offset - 1, s.last_contained_log_timestamp) for s in usable_snapshots(reader))
    return ((offset, millis) for offset, millis in times if millis >= 0)


def _batch_times(reader: LogReader) -> Iterator[tuple[int, int]]:
    """Last offset and time of each batch that has a time, without missing or damaged ones."""
    next_offset, last = reader.start_offset, reader.end_offset - 1

    def timed(batches: Iterator[RecordBatch]) -> Iterator[tuple[int, int]]:
        nonlocal next_offset
        for batch in batches:
            next_offset = batch.last_offset + 1
            if batch.timestamp >= 0:
                yield batch.last_offset, batch.timestamp

    try:
        yield from timed(reader.batches(next_offset, last))
    except CorruptDataError:
        yield from timed(readable_batches(reader, next_offset, last, lambda *_: None))


def _check_known(reader: LogReader, offset: int) -> None:
    """Raise BrokenFileError where an offset of the log is missing or damaged."""
    check_unbroken(reader, offset, offset)
    if reader.start_offset <= offset < reader.end_offset:
        for _ in reader.batches(offset, offset):
            pass


def _check_goes_on(reader: LogReader, found: int, millis: int | None, wanted: int) -> None:
    """Raise OffsetError where a gap between a snapshot and the log lies between the offset found and later ones.

    `millis` is the time of that offset, None where it is in the log alone.
    """
    start, end = reader.start_offset, reader.end_offset
    known = [s.end_offset - 1 for s in usable_snapshots(reader)] + ([start - 1] if start < end else [])
    last = min((offset for offset in known if offset > found), default=None)
    if last is None or start <= found + 1 < end:
        return
    if millis is None:
        millis = max(batch.timestamp for batch in reader.batches(found, found))
    if wanted > millis:
        lacks = f"offsets {found + 1} to {last}" if last > found + 1 else f"offset {last}"
        why = f"it begins with offset {start}" if found < start else f"its log ends with offset {end - 1}"
        raise OffsetError(
            f"{reader.name} lacks {lacks}, which may be of before {_iso(wanted)}: {why}. "
            f"Take offset {found}, of {_iso(millis)}, or a time after them."
        )
