"""The records that gave things their values, and since when the values hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kraftlake.diagnosis.thing_changes import Change, Changes, changes_of
from kraftlake.diagnosis.things import Thing, paths_like
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import NoSuchThingError
from kraftlake.runtime.words import did_you_mean


def newest_changes(
    source: LogSource, things: Iterable[Thing], at: int, *, lenient: bool = False
) -> dict[Thing, Change]:
    """The change that gave each thing its value at the offset `at`; things that do not exist then are left out.

    Its `since` is the offset from which the value holds. The log is read once for all things. Raises as `changes_of`.
    """
    lines = changes_of(source, things, at, newest_only=True, lenient=lenient).lines
    return {thing: line[-1] for thing, line in lines.items() if line[-1].after is not None}


def holding_since(line: Sequence[Change], holds: Callable[[Any], bool]) -> Change | None:
    """The change since which the value of a thing has met a condition, up to the end of its line of changes.

    `holds` gets a value in its JSON form, None for nothing. None where the last value does not meet the condition.
    """
    found = None
    for change in reversed(line):
        if not holds(change.after):
            break
        found = change
    return found


def blame(source: LogSource, thing: Thing, at: int, *, lenient: bool = False) -> Change:
    """The change that gave a thing its value at the offset `at`. Raises as `blamed`."""
    return blamed(source, thing, at, newest_only=True, lenient=lenient).lines[thing][-1]


def blame_all(source: LogSource, thing: Thing, at: int, *, lenient: bool = False) -> list[Change]:
    """All changes of a thing up to the offset `at`, the newest last. Raises as `blamed`."""
    return blamed(source, thing, at, lenient=lenient).lines[thing]


def blamed(source: LogSource, thing: Thing, at: int, *, newest_only: bool = False, lenient: bool = False) -> Changes:
    """The changes of one thing that has a value at the offset `at`, as `changes_of` returns them.

    Raises NoSuchThingError where it has none, else as `changes_of`.
    """
    changes = changes_of(source, [thing], at, newest_only=newest_only, lenient=lenient)
    line = changes.lines.get(thing, [])
    if not line or line[-1].after is None:
        why = _why(source, thing, at, line, lenient=lenient)
        removed_at = line[-1].offset if line else None
        raise NoSuchThingError(f"There is no {thing.text} at offset {at}{why}", removed_at=removed_at)
    return changes


def _why(source: LogSource, thing: Thing, at: int, line: Sequence[Change], *, lenient: bool) -> str:
    """The end of a thing that no longer exists, else the things with a path like it."""
    if line:
        gone = line[-1]
        return f": {gone.type} at offset {gone.offset} removed it, --at-offset {gone.since - 1} is before that."
    image = source.replay(at, lenient=lenient).image
    if thing.kind == "config":
        resource, name = thing.key
        ignored = image.configs.ignored.get(resource)
        if ignored is not None and name in ignored.data:
            return (
                ": the log sets it, and Kafka 4.4, which does not know it, ignores it; kraftlake log lists the records."
            )
    near = did_you_mean(thing.text, paths_like(thing, image))
    return f": {near}" if near else ", and the log up to there never had it."
