"""The first offset at which a condition holds, found in one pass over the log."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import attrs

from kraftlake.diagnosis.conditions import Condition
from kraftlake.diagnosis.thing_changes import Change, begins_of, changes_after, image_after
from kraftlake.diagnosis.things import Thing, paths_like
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.replay_base import check_covered, choose_base, readable_batches
from kraftlake.runtime.errors import NoSuchThingError, UsageError
from kraftlake.runtime.words import counted, did_you_mean

_Event: TypeAlias = "tuple[int, int | None, dict[Thing | str, Any]]"
"""An offset, its time, and the new values of names of a condition from that offset on."""


@attrs.frozen(kw_only=True)
class Bisected:
    """The offset from which on a condition holds, with its time (epoch ms, None for none).

    `before` is False where the condition did not hold at the offset before, None where it holds from the first offset
    of the range on. `skipped` are the records that a lenient search left out.
    """

    condition: str
    offset: int
    timestamp: int | None
    before: bool | None
    skipped: tuple[SkippedRecord, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake bisect --json`."""
        fields = ("condition", "offset", "timestamp", "before")
        return {name: getattr(self, name) for name in fields} | {"after": True}


def bisect(
    source: LogSource,
    condition: Condition,
    first: int | None = None,
    last: int | None = None,
    *,
    lenient: bool = False,
) -> Bisected:
    """The first offset of [first, last] at which a condition holds and did not hold at the offset before.

    `last` None is the end of the images. The images reach back from `last` without a gap. One pass over the log follows
    each thing in the condition, another one the counts; the condition is evaluated where one of them changes. With
    `lenient`, records that can't be replayed are skipped.

    Raises NoSuchThingError where the condition holds at none of the offsets, OffsetError where an end of the range has
    no image or the log does not go from one to the other, UsageError for a range that runs backwards or values that
    don't compare, and what the replay of a record raises.
    """
    if not condition.names:
        raise UsageError(
            f"The condition {condition.text} names nothing of the cluster, so that it holds always or never."
        )
    # a start past the end is an offset that is missing, not a range that runs backwards
    if last is None:
        last = source.last_image_offset if first is None else max(source.last_image_offset, first)
    if first is not None and first > last:
        raise UsageError(f"The range from offset {first} to {last} runs backwards.")
    known = begins_of(source, last, lenient=lenient)[0]
    first = max(known, min(last, 0)) if first is None else first
    begin = _begin(source, first, lenient=lenient)
    if source.kind is not SourceKind.SNAPSHOT:  # its replay says that there is one image
        check_covered(source.reader, first, last)  # lenient or not: a hole behind a snapshot has nothing to leave out
    skipped = _skipped(source, begin, last) if lenient else None
    things = [name for name in condition.names if isinstance(name, Thing)]
    lines = changes_after(source, things, begin, last, lenient=lenient).lines if things else {}
    counts = _of_counts(source, condition, begin, last, lenient=lenient)
    events = heapq.merge(_of_things(lines), counts, key=itemgetter(0))
    found = _first_holding(condition, dict.fromkeys(condition.names), events, first)
    if found is None:
        at = f"at offset {first}" if first == last else f"at any offset from {first} to {last}"
        without = f" without {counted(len(skipped), 'record')} that can't be replayed" if skipped else ""
        why = _why(source, {*things} - {*lines}, last, lenient=lenient)
        raise NoSuchThingError(f"The condition {condition.text} does not hold {at}{without}{why}")
    offset, time, before = found
    if before is None:
        timestamp = source.replay(first, lenient=lenient).image.provenance.timestamp
        time = None if timestamp < 0 else timestamp
    return Bisected(
        condition=condition.text, offset=offset, timestamp=time, before=before, skipped=tuple(skipped or ())
    )


def _first_holding(
    condition: Condition, values: dict[Thing | str, Any], events: Iterable[_Event], first: int
) -> tuple[int, int | None, bool | None] | None:
    """Offset, time and whether it held before; `values` are those before the events, and after the call, the last."""
    is_after_first = False
    for offset, group in groupby(events, key=itemgetter(0)):
        if offset > first and not is_after_first:
            is_after_first = True
            if condition.holds(values):
                return first, None, None
        changes = list(group)
        for _, _, changed in changes:
            values.update(changed)
        if is_after_first and condition.holds(values):
            return offset, changes[0][1], False
    return (first, None, None) if not is_after_first and condition.holds(values) else None


def _begin(source: LogSource, first: int, *, lenient: bool) -> int:
    """The offset of the image from which the log leads to `first`, -1 for the empty image."""
    if source.kind is SourceKind.SNAPSHOT:
        return first
    base = choose_base(source.reader, first, lenient=lenient)
    return -1 if base is None else base.end_offset - 1


def _skipped(source: LogSource, begin: int, last: int) -> list[SkippedRecord]:
    """The records that a lenient replay from the image at `begin` up to `last` leaves out."""
    loader = MetadataBatchLoader(image_after(source, begin, lenient=True), lenient=True)
    if begin < last:
        for batch in readable_batches(source.reader, begin + 1, last, loader.lost):
            loader.load_batch(batch, to_offset=last)
    return loader.skipped


def _of_things(lines: Mapping[Thing, Sequence[Change]]) -> list[_Event]:
    changes = sorted((change for line in lines.values() for change in line), key=lambda change: change.since)
    return [(change.since, change.since_time, {change.thing: change.after}) for change in changes]


def _of_counts(source: LogSource, condition: Condition, begin: int, last: int, *, lenient: bool) -> Iterator[_Event]:
    names = [name for name in condition.names if isinstance(name, str)]
    if not names:
        return
    from kraftlake.diagnosis.counts import count_changes  # imports numpy
    from kraftlake.tables.metrics.cluster_counts import COUNTS

    columns = [COUNTS.index(name) for name in names]
    before: list[int] = []
    image = image_after(source, begin, lenient=lenient)
    for changes in count_changes(source.reader, image, last, lenient=lenient):
        for offset, time, counts in zip(
            changes.offsets.tolist(), changes.times.tolist(), changes.counts[:, columns].tolist(), strict=True
        ):
            if counts != before:
                yield offset, None if time < 0 else time, dict(zip(names, counts, strict=True))
            before = counts


def _why(source: LogSource, unknown: Collection[Thing], last: int, *, lenient: bool) -> str:
    """The error message for a condition on things that never existed."""
    thing = min(unknown, key=str, default=None)
    if thing is None:
        return "."
    near = did_you_mean(thing.text, paths_like(thing, source.replay(last, lenient=lenient).image))
    return f": there is no {thing} up to there" + (f", {near}" if near else ".")
