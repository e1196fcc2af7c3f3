"""What a lake keeps: the declared policy, and what it means for snapshots and the log. Pure logic: no I/O, no clock."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Final, Self, TypeVar

import attrs

from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.runtime.errors import LakeError, UsageError

KEEP: Final = "kraftlake.keep_ms"
"""The table property with the window of the log in ms, or `forever`."""
NEWEST: Final = "kraftlake.keep_newest_snapshots"
"""The table property with the number of newest snapshots that stay; a lake that has it has declared a policy."""
DAILY: Final = "kraftlake.keep_daily_snapshots_days"
"""The table property with the days for which one snapshot a day stays."""

SnapshotT = TypeVar("SnapshotT", bound=SnapshotFacts)
DAY_MS: Final = 24 * 3_600_000
_FOREVER: Final = "forever"
_ACROSS_CLOCKS_MS: Final = DAY_MS
"""The time for which a daily snapshot outlives its days: two upkeeps, whose clocks differ, may choose it as a base."""


@attrs.frozen(kw_only=True)
class Retention:
    """What a lake keeps: `keep_ms` of its log and tables (None: all), and some of its snapshots.

    Of the snapshots stay: the `newest_snapshots`, the first of each day for `daily_days` days, and the first of each
    month for ever. Raises UsageError for other values.
    """

    keep_ms: int | None = None
    newest_snapshots: int = 24
    daily_days: int = 30

    def __attrs_post_init__(self) -> None:
        if self.newest_snapshots < 1:
            raise UsageError("A lake keeps 1 snapshot at least: an image has to begin somewhere.")
        if self.daily_days < 0 or (self.keep_ms is not None and self.keep_ms < 0):
            raise UsageError("What a lake keeps is no negative time.")

    @classmethod
    def declared_in(cls, configuration: Mapping[str, str]) -> Self | None:
        """The policy in a log's table properties; None where none is. Raises LakeError for what is no policy."""
        if NEWEST not in configuration:
            return None
        named = {name: configuration.get(name, "") for name in (KEEP, NEWEST, DAILY)}
        for name, value in named.items():
            if not value.isdecimal() and (name, value) != (KEEP, _FOREVER):
                raise LakeError(f"The table property {name} is {value!r}, which is no number: declare the policy anew.")
        return cls(
            keep_ms=None if named[KEEP] == _FOREVER else int(named[KEEP]),
            newest_snapshots=int(named[NEWEST]),
            daily_days=int(named[DAILY]),
        )

    @property
    def properties(self) -> dict[str, str]:
        """The table properties that declare this policy."""
        keep = _FOREVER if self.keep_ms is None else str(self.keep_ms)
        return {KEEP: keep, NEWEST: str(self.newest_snapshots), DAILY: str(self.daily_days)}

    def stays(self, snapshots: Sequence[SnapshotFacts], now_ms: int) -> set[int]:
        """The end offsets of the snapshots that stay, by their times alone; those without a time, and bootstraps."""
        return self._stays(snapshots, now_ms - self.daily_days * DAY_MS)

    def dispensable(self, snapshots: Sequence[SnapshotT], *, needed: Iterable[int], now_ms: int) -> list[SnapshotT]:
        """The snapshots that go, by end offset; none of those that end at a `needed` offset.

        A daily one goes a day later than `stays` says: another upkeep, by another clock, may make it the log's base.
        """
        kept = self._stays(snapshots, now_ms - self.daily_days * DAY_MS - _ACROSS_CLOCKS_MS) | {*needed}
        return sorted((one for one in snapshots if one.end_offset not in kept), key=lambda one: one.end_offset)

    def _stays(self, snapshots: Sequence[SnapshotFacts], daily_since_ms: int) -> set[int]:
        ordered = sorted(snapshots, key=lambda one: one.end_offset)
        kept = {one.end_offset for one in ordered[-self.newest_snapshots :]}
        days, months = set[str](), set[str]()
        for one in ordered:
            time_ms = one.last_contained_log_timestamp
            if one.end_offset == 0 or time_ms < 0:
                kept.add(one.end_offset)
                continue
            day = datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat()
            is_first_of_day, is_first_of_month = day not in days, day[:7] not in months
            days.add(day)
            months.add(day[:7])
            if is_first_of_month or (is_first_of_day and time_ms >= daily_since_ms):
                kept.add(one.end_offset)
        return kept

    def bases(self, snapshots: Sequence[SnapshotT], records: Sequence[TimedOffset], *, now_ms: int) -> list[SnapshotT]:
        """The snapshots before which the log may be trimmed, the newest first; none where all is kept.

        Everything within `keep_ms` before `now_ms` has an image then. A snapshot counts that stays, that is old enough
        by its time, and after which the log holds `keep_ms` of recorded time: a clock that jumps makes nothing old.
        """
        if self.keep_ms is None:
            return []
        stays, keep_ms = self.stays(snapshots, now_ms), self.keep_ms
        timed = ((one.end_offset - 1, one.last_contained_log_timestamp) for one in snapshots)
        recorded_ms = recorded([*records, *(TimedOffset(at, time_ms) for at, time_ms in timed if time_ms >= 0)])
        return [
            one
            for one in sorted(snapshots, key=lambda one: one.end_offset, reverse=True)
            if one.end_offset > 0
            and one.end_offset in stays
            and 0 <= one.last_contained_log_timestamp <= now_ms - keep_ms
            and recorded_ms(one.end_offset - 1) >= keep_ms
        ]


@attrs.frozen(order=True)
class TimedOffset:
    """A record of a log with its time in epoch ms."""

    offset: int
    time_ms: int


def recorded(points: Iterable[TimedOffset]) -> Callable[[int], int]:
    """The time (ms) over which a log was recorded from an offset on; between two known times it counts a day at most.

    A clock that jumps by years therefore counts as a day, and a log that was seldom written to as less than its age.
    """
    known = sorted(points)
    steps = [min(max(after.time_ms - before.time_ms, 0), DAY_MS) for before, after in pairwise(known)]
    since = [*accumulate(reversed(steps), initial=0)][::-1]
    return lambda offset: since[min(bisect_left(known, offset, key=attrgetter("offset")), len(steps))]
