"""Check of a whole log, file by file, which reports every problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from kraftlake.kafka_files.directory import MetadataDirectory, check_follows
from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.node.startup_files import check_node_files
from kraftlake.kafka_files.problem import Problem
from kraftlake.kafka_files.segments.batch_walk import Damage, walk
from kraftlake.kafka_files.segments.segment import ReaderPosition, Segment, decode
from kraftlake.kafka_files.snapshots.snapshot import Snapshot
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.runtime.errors import CorruptDataError

_OWN_TIMES = "a batch whose records have timestamps of their own: Kafka does not start with it"
"""Records with their own timestamps. Source: org.apache.kafka.raft.internals.RecordsIterator.readRecord."""


def check_directory(directory: MetadataDirectory, seen: Callable[[int], None] | None = None) -> Iterator[Problem]:
    """Read every byte of the log and its snapshots, and yield every problem, in the order of the files.

    Checked are CRCs, framing of records, holes and overlaps, decreasing epochs, broken or unfinished snapshots, and
    other faults with which Kafka does not start: see `check_node_files`. The torn tail is `directory.torn`. The meaning
    of the records is not checked. `seen` is called with the offset after each batch of the log.
    """
    at = ReaderPosition(directory.start_offset)
    for segment in directory.segments:
        yield from _check_segment(segment, at, seen)
    for snapshot in directory.snapshots:
        yield from _check_snapshot(snapshot)
    if directory.kind is SourceKind.DIRECTORY:
        for name, message in check_node_files(Path(directory.path)):
            yield Problem(file=name, message=message)


def _check_segment(segment: Segment, at: ReaderPosition, seen: Callable[[int], None] | None) -> Iterator[Problem]:
    """Yield the problems of one segment and move `at` past it."""
    name = segment.file.name
    try:
        check_follows(at.offset, segment)
    except BrokenFileError as error:
        yield Problem.of(error)
    at.offset = segment.base_offset
    after_damage = False
    for step in walk(segment.file, limit=segment.end_position):
        if isinstance(step, Damage):
            yield Problem(file=name, position=step.position, offset=at.offset, message=step.reason)
            after_damage = True
            continue
        if after_damage:  # what is missing here has been reported
            at.offset = max(at.offset, step.header.base_offset)
            after_damage = False
        fault = at.fault(step.header.base_offset, step.header.epoch)
        if fault is not None:
            yield Problem(
                file=name, position=step.position, offset=min(at.offset, step.header.base_offset), message=fault
            )
        try:
            batch = decode(segment.file, step)
        except BrokenFileError as error:
            yield Problem.of(error)
        else:
            if {*batch.timestamps} != {step.header.base_timestamp}:
                yield Problem(file=name, position=step.position, offset=batch.base_offset, message=_OWN_TIMES)
        at.pass_by(step.header.last_offset, step.header.epoch)
        if seen is not None:
            seen(at.offset)


def _check_snapshot(snapshot: Snapshot) -> Iterator[Problem]:
    name = snapshot.name
    position = offset = 0
    try:
        for batch in snapshot.batches():
            if len({*batch.timestamps}) > 1:
                yield Problem(
                    file=name, position=batch.position, offset=batch.base_offset, message=_OWN_TIMES, in_snapshot=True
                )
            position, offset = batch.position + batch.size_in_bytes, batch.last_offset + 1
    except BrokenFileError as error:
        yield Problem.of(error, in_snapshot=True)
        return
    except CorruptDataError as error:
        yield Problem(file=name, position=position, offset=offset, message=str(error), in_snapshot=True)
        return
    if not snapshot.finished:
        message = "the snapshot is unfinished: it has no footer"
        yield Problem(file=name, position=position, offset=offset, message=message, in_snapshot=True)
