"""The start of a replay to an offset: the empty image, or a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.open_reader import LogReader, SnapshotReader
from kraftlake.runtime.errors import CorruptDataError, OffsetError

if TYPE_CHECKING:
    from kraftlake.kafka_files.directory import BrokenRange


def usable_snapshots(reader: LogReader) -> list[SnapshotReader]:
    """The snapshots, by end offset, from which an image can be loaded: finished, not bootstrap input, with a known end.

    A snapshot file that lost its name has the end offset 0.
    """
    usable = (s for s in reader.snapshots if s.finished and not s.bootstrap and s.end_offset > 0)
    return sorted(usable, key=lambda s: (s.end_offset, s.epoch))


def snapshot_provenance(snapshot: SnapshotReader) -> MetadataProvenance:
    """The provenance of the image that a snapshot holds."""
    return MetadataProvenance(
        offset=snapshot.end_offset - 1, epoch=snapshot.epoch, timestamp=snapshot.last_contained_log_timestamp
    )


def has_beginning(reader: LogReader) -> bool:
    """Whether replays of a log can start from the empty image: it has all offsets, or all but the first.

    At offset 0 a log has the change to its first leader, the only record before any other batch; images do not depend
    on it, and a live quorum does not always return it. Source: org.apache.kafka.raft.KafkaRaftClient.onBecomeLeader.
    """
    return reader.start_offset <= 1


def oldest_snapshot(reader: LogReader) -> SnapshotReader:
    """The oldest snapshot that covers the start of a log which starts above 0; OffsetError if there is none."""
    start = reader.start_offset
    for snapshot in usable_snapshots(reader):
        if start <= snapshot.end_offset <= reader.end_offset:
            return snapshot
    raise OffsetError(
        f"{reader.name} starts at offset {start} and has no snapshot that covers that start, so there is no image to "
        "start from: import a source that has one"
    )


def images_end(reader: LogReader) -> int:
    """The first offset after the last one that an image exists for; a snapshot may be ahead of the log."""
    ends = [s.end_offset for s in usable_snapshots(reader)]
    return max([reader.end_offset, *ends])


def broken_ranges(reader: LogReader, first: int, last: int) -> list[BrokenRange]:
    """The gaps between segments, and the overlaps of segments, that hold any offset in [first, last]."""
    if first > last:
        return []
    ranges: tuple[BrokenRange, ...] = getattr(reader, "broken_ranges", ())
    return [one for one in ranges if one.first <= last and one.last >= first]


def readable_batches(
    reader: LogReader, first: int, last: int, lost: Callable[[int, int, str], None] | None
) -> Iterator[RecordBatch]:
    """`reader.batches`; with `lost`, skips missing and damaged offsets of Kafka's files and calls `lost` with them."""
    if lost is None or not hasattr(reader, "readable_batches"):
        return reader.batches(first, last)
    found: Iterator[RecordBatch] = reader.readable_batches(first, last, lost)
    return found


def check_unbroken(reader: LogReader, first: int, last: int) -> None:
    """Raise BrokenFileError where offsets in [first, last] are missing between two segments, or in both of them.

    For answers that are streamed: the error comes before the first part of the answer.
    """
    for broken in broken_ranges(reader, first, last):
        raise broken.fault


def check_covered(reader: LogReader, from_offset: int, to_offset: int) -> None:
    """Raise OffsetError where the log lacks an offset of (from_offset, to_offset]: images alone show no changes."""
    start, end = reader.start_offset, reader.end_offset
    is_behind = from_offset + 1 < start and not has_beginning(reader)
    if from_offset < to_offset and (is_behind or to_offset >= end):
        held = f"offsets {_range(start, end)}" if start < end else "no offsets"
        wanted = f"all changes after offset {from_offset} up to {to_offset}"
        raise OffsetError(f"the log of {reader.name} holds {held}, so it can't tell {wanted}.")


def choose_base(
    reader: LogReader,
    at: int,
    *,
    from_snapshot: bool | None = None,
    known_as_sound: Callable[[SnapshotReader], bool] = lambda _: False,
    lenient: bool = False,
) -> SnapshotReader | None:
    """The snapshot on which to replay up to and including offset `at`; None is the empty image.

    The snapshot is the newest one whose last offset is at or before `at` and that isn't damaged: damaged ones are
    skipped with a warning. A snapshot that is `known_as_sound` is not read for this check. With `from_snapshot` False
    only the log is used, with True only a snapshot. Raises OffsetError where neither the log nor a snapshot covers
    `at`, with the first offset from there on that has an image, and BrokenFileError where the log in between lacks
    offsets, unless `lenient`.
    """
    end = images_end(reader)
    if at >= end or at < 0:
        raise OffsetError(_out_of_range(reader, at, end))
    snapshots = usable_snapshots(reader) if from_snapshot is not False else []
    if from_snapshot is False and (not has_beginning(reader) or at >= reader.end_offset):
        raise OffsetError(
            f"the log of {reader.name} holds offsets {_range(reader.start_offset, reader.end_offset)}, "
            f"so the image at offset {at} can't be replayed from the log alone."
        )
    log = range(reader.start_offset, reader.end_offset)
    for snapshot in reversed(snapshots):
        base = snapshot.end_offset
        covers = base - 1 == at or (base <= at and base >= log.start and at in log)
        if covers and (known_as_sound(snapshot) or _is_sound(snapshot, reader)):
            _check_replayable(reader, base, at, lenient=lenient)
            return snapshot
    if not from_snapshot and has_beginning(reader) and (at in log or at == log.start - 1):
        _check_replayable(reader, log.start, at, lenient=lenient)
        return None
    if from_snapshot and has_beginning(reader):
        raise OffsetError(f"{reader.name} has no finished snapshot at or before offset {at}.")
    raise OffsetError(_uncovered(reader, at))


def _check_replayable(reader: LogReader, first: int, at: int, *, lenient: bool) -> None:
    """Raise where the log that leads from a base to `at` lacks offsets; an older base does not help there."""
    broken = [] if lenient else broken_ranges(reader, first, at)
    if broken:
        fault = broken[0].fault
        message = f"{fault.message}; images exist at offsets {', '.join(image_ranges(reader))}"
        raise type(fault)(fault.file, fault.position, fault.offset, message)


def _is_sound(snapshot: SnapshotReader, reader: LogReader) -> bool:
    damage = snapshot.damage()
    if damage is not None:
        from kraftlake.runtime.log import get_logger

        logger = get_logger(__name__)
        logger.warning("snapshot_skipped", snapshot=snapshot.name, source=reader.name, reason=damage)
    return damage is None


def first_image_offset(reader: LogReader, at: int = 0) -> int | None:
    """The first offset at or after `at` that has an image; None when there is none."""
    return next((max(at, one.start) for one in _ranges_of_images(reader) if one.stop > at), None)


def changes_begin(reader: LogReader) -> int:
    """The first offset whose changes are known: records of the log before it have no image that they change."""
    start = reader.start_offset
    if has_beginning(reader):
        return start
    first = first_image_offset(reader, start - 1)
    return reader.end_offset if first is None else first + 1


def snapshot_named(reader: LogReader) -> SnapshotReader:
    """The one snapshot of a source that is only a snapshot file; CorruptDataError when it is unfinished."""
    (snapshot,) = reader.snapshots
    if not snapshot.finished:
        raise CorruptDataError(
            f"{snapshot.name} has no footer: it is a snapshot that was never finished, so it holds no image."
        )
    return snapshot


def image_ranges(reader: LogReader) -> Iterator[str]:
    """The ranges of offsets that have images, in words."""
    return (str(one.start) if len(one) == 1 else _range(one.start, one.stop) for one in _ranges_of_images(reader))


def _ranges_of_images(reader: LogReader) -> list[range]:
    """The offsets that have images: those of snapshots, and those of the log after the empty image or a snapshot."""
    log = range(reader.start_offset, reader.end_offset)
    bases = [snapshot.end_offset for snapshot in usable_snapshots(reader)]
    if log and has_beginning(reader):
        bases.insert(0, log.start)
    found: list[range] = []
    for base in bases:
        stop = base
        if log.start <= base < log.stop:
            broken = broken_ranges(reader, base, log.stop)
            stop = max(base, broken[0].first if broken else log.stop)
        one = range(max(base - 1, 0), stop)
        if found and one.start <= found[-1].stop:
            one = range(found[-1].start, max(found.pop().stop, one.stop))
        if one:
            found.append(one)
    return found


def _range(start: int, end: int) -> str:
    return f"{start} to {end - 1}" if end > start else "none"


def _out_of_range(reader: LogReader, at: int, end: int) -> str:
    if end <= 0:
        return f"{reader.name} holds no offsets, so it has no image."
    start = min(reader.start_offset, end)
    held = f"offsets {_range(start, end)}" if end > start else "no offsets"
    side = "before the first offset" if at < 0 else "past the end"
    return f"Offset {at} is {side} of {reader.name}, which holds {held}."


def _uncovered(reader: LogReader, at: int) -> str:
    start = reader.start_offset
    first = first_image_offset(reader, at)
    if first is None and not usable_snapshots(reader):
        return (
            f"{reader.name} starts at offset {start} and no finished snapshot covers that start, so it has no image: "
            f"its records can be listed from offset {start} on."
        )
    if first is None:
        return f"{reader.name} has no image at offset {at}; images exist at offsets {', '.join(image_ranges(reader))}."
    return (
        f"{reader.name} has no image at offset {at}: its log starts at offset {start}, "
        f"and the first image from there on is the one at offset {first}."
    )
