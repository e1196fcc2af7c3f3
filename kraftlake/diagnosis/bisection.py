"""The first offset at which a condition holds, found in one pass over the log."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import attrs

from kraftlake.diagnosis.blaming import did_you_mean
from kraftlake.diagnosis.changes import Change, begins_of, changes_after, image_after
from kraftlake.diagnosis.conditions import Condition
from kraftlake.diagnosis.things import Thing
from kraftlake.image import ClusterCounts
from kraftlake.kafka_files import SourceKind
from kraftlake.replay import LogSource, choose_base
from kraftlake.runtime.errors import NoSuchThingError, UsageError

_Event: TypeAlias = "tuple[int, int | None, dict[Thing | str, Any]]"
"""An offset, its time, and the values that names of a condition have from there on."""


@attrs.frozen(kw_only=True)
class Bisected:
    """The offset from which on a condition holds, with its time (epoch ms, None for none).

    `before` is False where the condition did not hold at the offset before, None where it holds from the first offset
    of the range on.
    """

    condition: str
    offset: int
    timestamp: int | None
    before: bool | None

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake bisect --json`."""
        return attrs.asdict(self) | {"after": True}


def bisect(source: LogSource, condition: Condition, first: int | None = None, last: int | None = None) -> Bisected:
    """The first offset of [first, last] at which a condition holds and did not hold at the offset before.

    None is as far as images go; they go on from `last` to before without a gap. Each thing that the condition names is
    followed in one pass over the log, and counts in another; the condition is evaluated where one of them changes.

    Raises NoSuchThingError where the condition holds at none of the offsets, OffsetError where an end of the range has
    no image, UsageError for a range that runs backwards or values that don't compare, and what the replay of a record
    raises.
    """
    if not condition.names:
        raise UsageError(
            f"The condition {condition.text} names nothing of the cluster, so that it holds always or never."
        )
    last = source.last_image_offset if last is None else last
    if first is not None and first > last:
        raise UsageError(f"The range from offset {first} to {last} runs backwards.")
    known = begins_of(source, last)[0]
    first = max(known, min(last, 0)) if first is None else first
    begin = _begin(source, first)
    things = [name for name in condition.names if isinstance(name, Thing)]
    lines = changes_after(source, things, begin, last).lines if things else {}
    events = heapq.merge(_of_things(lines), _of_counts(source, condition, begin, last), key=itemgetter(0))
    found = _first_holding(condition, dict.fromkeys(condition.names), events, first)
    if found is None:
        at = f"at offset {first}" if first == last else f"at any offset from {first} to {last}"
        raise NoSuchThingError(
            f"The condition {condition.text} does not hold {at}{_why(source, {*things} - {*lines}, last)}"
        )
    offset, time, before = found
    if before is None:
        timestamp = source.replay(first).image.provenance.timestamp
        time = None if timestamp < 0 else timestamp
    return Bisected(condition=condition.text, offset=offset, timestamp=time, before=before)


def _first_holding(
    condition: Condition, values: dict[Thing | str, Any], events: Iterable[_Event], first: int
) -> tuple[int, int | None, bool | None] | None:
    """Offset, time and whether it held before; `values` are those before the events, and then those after the last."""
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


def _begin(source: LogSource, first: int) -> int:
    """The offset of the image from which the log leads to `first`, -1 for the empty image."""
    if source.kind is SourceKind.SNAPSHOT:
        return first
    base = choose_base(source.reader, first)
    return -1 if base is None else base.end_offset - 1


def _of_things(lines: Mapping[Thing, Sequence[Change]]) -> list[_Event]:
    changes = sorted((change for line in lines.values() for change in line), key=lambda change: change.since)
    return [(change.since, change.since_time, {change.thing: change.after}) for change in changes]


def _of_counts(source: LogSource, condition: Condition, begin: int, last: int) -> Iterator[_Event]:
    names = [name for name in condition.names if isinstance(name, str)]
    if not names:
        return
    from kraftlake.diagnosis.counts import count_changes  # imports numpy

    columns = [[field.name for field in attrs.fields(ClusterCounts)].index(name) for name in names]
    before: list[int] = []
    for changes in count_changes(source.reader, image_after(source, begin), last):
        for offset, time, counts in zip(
            changes.offsets.tolist(), changes.times.tolist(), changes.counts[:, columns].tolist(), strict=True
        ):
            if counts != before:
                yield offset, None if time < 0 else time, dict(zip(names, counts, strict=True))
            before = counts


def _why(source: LogSource, unknown: Collection[Thing], last: int) -> str:
    """What is wrong with a condition that names things which never were there."""
    thing = min(unknown, key=str, default=None)
    if thing is None:
        return "."
    near = did_you_mean(thing, source.replay(last).image)
    return f": there is no {thing} up to there" + (f", {near}" if near else ".")
