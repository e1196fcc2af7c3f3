"""Counts of records or events, and their range."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from kraftlake.runtime.errors import KraftlakeError

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.records.log_record import LogRecord

T = TypeVar("T")

COUNTED_BY = ("kind", "minute", "topic", "broker")
"""The keys that events are counted by."""

FLOOD = 500
"""The number of lines above which a terminal gets counts instead, unless lines are requested."""

_MINUTE = 60_000


class Tally:
    """Lines of a log, counted by a key.

    `by` names the key; a `minute` is its start (epoch ms). None stands for lines without the key.
    """

    def __init__(self, by: str) -> None:
        self.by = by
        self.counts: Counter[Any] = Counter()
        self.offsets: tuple[int, int] | None = None
        self.times: tuple[int, int] | None = None

    @property
    def total(self) -> int:
        """The number of lines."""
        return self.counts.total()

    def ranked(self) -> list[tuple[Any, int]]:
        """The keys with their numbers of lines: minutes in time order, other keys by descending number."""
        if self.by == "minute":
            return sorted(self.counts.items(), key=lambda item: -1 if item[0] is None else item[0])
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0] is None, item[0]))

    def add_place(self, offset: int, time: int) -> None:
        """Add the offset and the time (epoch ms, -1 for none) of a line; lines come in the order of offsets."""
        self.offsets = (offset, offset) if self.offsets is None else (self.offsets[0], offset)
        if time >= 0:
            self.times = (time, time) if self.times is None else (self.times[0], time)


def held_lines(items: Iterable[T], size: Callable[[T], int]) -> tuple[list[T], Iterator[T], bool]:
    """The first items, read until they have more than FLOOD lines; the remaining items; whether FLOOD was exceeded.

    An error while reading is raised after the first items: the iterator of the remaining ones raises it at once.
    """
    held: list[T] = []
    rest, lines = iter(items), 0
    try:
        for item in rest:
            held.append(item)
            lines += size(item)
            if lines > FLOOD:
                return held, rest, True
    except KraftlakeError as error:
        return held, _raising(error), False
    return held, rest, False


def _raising(error: KraftlakeError) -> Iterator[Any]:
    raise error
    yield


def tally_of_events(tables: Iterable[pa.Table], by: str) -> Tally:
    """The rows of `events/` counted by one of COUNTED_BY."""
    tally = Tally(by)
    for table in tables:
        if not len(table):
            continue
        times = times_of(table)
        for at in (0, -1):
            tally.add_place(table.column("offset")[at].as_py(), times[at])
        if by == "minute":
            tally.counts.update(None if time < 0 else time - time % _MINUTE for time in times)
        else:
            counted = table.column(by).value_counts()
            tally.counts.update(dict(zip(*(counted.field(side).to_pylist() for side in (0, 1)), strict=True)))
    return tally


def tally_of_records(records: Iterable[LogRecord]) -> Tally:
    """Records counted by their type."""
    tally = Tally("type")
    record = None
    for record in records:
        if tally.offsets is None:
            tally.add_place(record.offset, record.timestamp)
        tally.counts[record.type] += 1
    if record is not None:
        tally.add_place(record.offset, record.timestamp)
    return tally


def times_of(events: pa.Table) -> list[int]:
    """The times of rows of `events/` (epoch ms, -1 for none)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    micros = events.column("timestamp").cast(pa.int64())
    times: list[int] = pc.fill_null(pc.divide(micros, 1000), -1).to_pylist()
    return times
