"""The availability of topics, partitions or brokers within a window of a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import attrs

from kraftlake.diagnosis.thing_changes import begins_of, image_after
from kraftlake.replay.loader.manifest import SkippedRecord
from kraftlake.replay.queries.source import LogSource
from kraftlake.replay.reading.times import epoch_millis
from kraftlake.runtime.errors import KraftlakeError, OffsetError, UsageError
from kraftlake.runtime.html import html_table
from kraftlake.runtime.json_names import camel_case
from kraftlake.runtime.moments import EPOCH, LogTime, iso

if TYPE_CHECKING:
    import pyarrow as pa

BY: Final = ("topic", "partition", "broker")


@attrs.frozen(kw_only=True, eq=False)
class Availability:
    """The time that partitions spent in troubles between two times (epoch ms), by topic, partition or broker.

    `total` has the fields of all partitions together, `rows` (an Arrow table) those of each, the worst first:

    - `topic`, `topic_id` (string) and, by partition, `partition` (int32); or `broker` (int32, null for what no broker's
      loss began), `losses` (int64) and `fenced_seconds` (float64): a row has what the losses of this broker began;
    - `partitions` (int64): the number of those that existed, or that were concerned;
    - `seconds`, `offline_seconds`, `led_by_fenced_seconds`, `under_min_isr_seconds`, `one_in_sync_seconds` (float64):
      seconds of partitions, in which they existed and in which each trouble lasted;
    - `any_offline_seconds` (float64): the seconds in which at least one of the partitions was offline;
    - `available_percent` (float64): the part of `seconds` that is not offline, null without any;
    - `longest_trouble`, `longest_partition`, `cause` (string), `longest_seconds` (float64), `longest_begin_timestamp`,
      `longest_end_timestamp` (int64, epoch ms; null: it went on), `cause_broker` (int32), `cause_offset` (int64): the
      longest stretch of the worst trouble, and the record that began it; null without one.

    `starts_before_log` and `ends_after_log`: the log does not reach that far, the window is cut. `clock_back_ms` is the
    longest way that the time of batches went back: time stood still meanwhile.
    """

    by: str
    begin: int
    end: int
    first_offset: int
    last_offset: int
    starts_before_log: bool
    ends_after_log: bool
    clock_back_ms: int
    total: dict[str, Any]
    rows: pa.Table = attrs.field(repr=False)
    skipped: Sequence[SkippedRecord] = ()

    def to_table(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.rows

    def to_json(self) -> dict[str, Any]:
        """The form of `kraftlake availability --json`."""
        return {
            "by": self.by,
            "beginTimestamp": self.begin,
            "endTimestamp": self.end,
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
            "startsBeforeLog": self.starts_before_log,
            "endsAfterLog": self.ends_after_log,
            "clockBackSeconds": self.clock_back_ms / 1000,
            "total": _camel(self.total),
            "rows": [_camel(row) for row in self.rows.to_pylist()],
        }

    def _repr_html_(self) -> str:
        shown = self.rows.slice(0, _SHOWN).to_pylist()
        fields = (self.rows.column_names[0], "available_percent", "offline_seconds", "under_min_isr_seconds")
        rows = [tuple(str(row[name]) for name in fields) for row in shown]
        return html_table(rows, header=fields, caption=f"Availability by {self.by}")


_SHOWN: Final = 20


def _camel(row: dict[str, Any]) -> dict[str, Any]:
    return {camel_case(name): value for name, value in row.items()}


@attrs.frozen(kw_only=True)
class _Window:
    """A window: its offsets, `first` None for the log's begin, and its times where they are given (epoch ms).

    `is_early`: it should begin before the log, `is_late`: changes of the log are before it.
    """

    first: int | None
    last: int
    begin: int | None
    end: int | None
    is_early: bool
    is_late: bool


def availability_of(
    source: LogSource,
    begin: int | datetime | LogTime | None,
    end: int | datetime | LogTime | None,
    *,
    by: str = "topic",
    is_wanted: Callable[[str], bool] = lambda _: True,
    lenient: bool = False,
) -> Availability:
    """Measure the availability within a window of a log, whose ends are offsets or times as in `Source`.

    An end that is a time is that time, whether a record has it or not. The log is read from as early as it is whole, so
    that what began before the window has its cause. Raises OffsetError where the log has nothing of the window,
    UsageError where it runs backwards, and the errors of replaying a record.
    """
    if by not in BY:
        raise UsageError(f"{by!r} is nothing to measure by: these are {', '.join(BY)}.")
    window = _window(source, *(source.time_of(one) if isinstance(one, LogTime) else one for one in (begin, end)))
    begins = _begins(source, window, lenient=lenient)
    for start in begins[:-1]:
        with suppress(KraftlakeError):
            return _measured(source, start, window, by, is_wanted, lenient=lenient)
    return _measured(source, begins[-1], window, by, is_wanted, lenient=lenient)


def _window(source: LogSource, begin: int | datetime | None, end: int | datetime | None) -> _Window:
    final, known = source.end_offset - 1, source.changes_begin
    for offset in (begin, end):
        if isinstance(offset, int) and not 0 <= offset <= final:
            held = f"offsets {source.start_offset} to {final}"
            raise OffsetError(f"Offset {offset} is not in the log of {source.name}, which holds {held}.")
    first = source.offset_since(begin) if isinstance(begin, datetime) else begin
    last = final if end is None else end if isinstance(end, int) else min(source.offset_at(end), final)
    gap = 1 if isinstance(begin, datetime) else 0  # between two times there may be no record
    if first is not None and first > last + gap:
        raise UsageError(f"The window from {_shown(begin)} to {_shown(end)} runs backwards.")
    if last < known - 1:
        raise OffsetError(
            f"The log of {source.name} has no image of the window: the first is that at offset {known - 1}."
        )
    of_log = first is None or first < known + gap
    return _Window(
        first=None if of_log else first,
        is_late=first is not None and first > known,
        last=last,
        begin=epoch_millis(begin) if isinstance(begin, datetime) else None,
        end=epoch_millis(end) if isinstance(end, datetime) else None,
        is_early=isinstance(begin, int) and begin < known,
    )


def _shown(moment: int | datetime | None) -> str:
    return iso(moment) if isinstance(moment, datetime) else f"offset {moment}"


def _begins(source: LogSource, window: _Window, *, lenient: bool) -> Sequence[int]:
    """The offsets of the images from which to read: one that covers most of the log, then the newest."""
    if window.first is not None and window.is_late:
        return begins_of(source, window.first - 1, lenient=lenient)
    return begins_of(source, window.last, lenient=lenient)[:1]


def _measured(
    source: LogSource, start: int, window: _Window, by: str, is_wanted: Callable[[str], bool], *, lenient: bool
) -> Availability:
    from kraftlake.diagnosis.availability.window_log import WindowLog  # imports numpy

    log = WindowLog(image_after(source, start, lenient=lenient), window.first, window.begin, is_wanted)
    log.read(source.reader, window.last, lenient=lenient)
    if log.clock.begin is None:
        raise OffsetError(f"No change of {source.name} within the window has a time, so none lasts for any.")
    begin, end = log.clock.begin, log.clock.now
    if window.begin is not None:
        begin = max(begin, window.begin)
    ends_after = window.end is not None and window.last == source.end_offset - 1 and window.end > end
    if window.end is not None and not ends_after:
        end = window.end
    if begin > end:
        raise UsageError(f"The window runs backwards: it begins at {_at(begin)} and ends at {_at(end)}.")
    total, rows = log.summary(by, begin, end)
    return Availability(
        by=by,
        begin=begin,
        end=end,
        first_offset=max(start + 1, source.start_offset) if window.first is None else window.first,
        last_offset=window.last,
        starts_before_log=start >= (window.first or start + 1) or window.is_early or (window.begin or begin) < begin,
        ends_after_log=ends_after,
        clock_back_ms=log.clock.back,
        total=total,
        rows=rows,
        skipped=tuple(log.skipped),
    )


def _at(millis: int) -> str:
    return iso(EPOCH + timedelta(milliseconds=millis))
