"""Moments of a log in arguments: an int is an offset, text or a datetime is a time.

A time as text is ISO 8601, or relative to the end of a log, where `now` is the time of its newest record: `now`,
`now-1h30m`, a time of day (`07:46`, the last one within the log), `today` and `yesterday`, also with a time of day. A
day means its first moment, even if clocks show midnight twice or never.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple, TypeAlias

from kraftlake.runtime.arguments import whole
from kraftlake.runtime.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+\s*")
_FORMS = "ISO 8601 (2026-11-21T08:00:00Z), now-15m, a time of day (07:46)"
_NO_TIME = f"not a time: give {_FORMS} or milliseconds since 1970"
_NO_MOMENT = f"neither an offset nor a time: give a whole number, {_FORMS} or yesterday"
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LENGTH = re.compile(r"(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+")
_PART_OF_LENGTH = re.compile(r"([\d.]+)\s*([a-z]+)")
_UNIT_WORDS = re.compile(r"(ms|s|m|h|d|w)|(s)ec(?:ond)?s?|(m)in(?:ute)?s?|(h)(?:ou)?rs?|(d)ays?|(w)eeks?")
_BEFORE_NOW = re.compile(r"now(?:\s*-\s*(.+))?")
_DAYS = {"today": 0, "yesterday": 1}
_ON_A_DAY = re.compile(r"(?:(today|yesterday)(?:\s+|$))?(\d{1,2}:\d\d.*)?")


class LogTime(NamedTuple):
    """A time relative to the end of a log, parsed from `text`.

    Without `clock` the time is `back` before the end; with `clock` that time of day in `zone`, the last one at or
    before the end, or `days` before the date of the end.
    """

    text: str
    back: timedelta = timedelta()
    clock: time | None = None
    days: int | None = None
    zone: tzinfo = UTC

    def before(self, end: datetime) -> datetime:
        """The time in UTC for a log whose newest record has the time `end`. Raises UsageError before the year 1."""
        try:
            if self.clock is None:
                return end.astimezone(UTC) - self.back
            zone = self.clock.tzinfo or self.zone
            date = end.astimezone(zone).date()
            clock = self.clock.replace(tzinfo=None)
            if self.days is not None:
                local = datetime.combine(date - timedelta(days=self.days), clock)
                return _in_utc(local, zone) if clock == time() else _one_reading(self.text, local, zone)
            # where clocks are set forward a time of day may be the next day's, or not come at all
            days = (datetime.combine(date - timedelta(days=days), clock) for days in range(3))
            found = [moment for local in days for moment in _readings(local, zone) if _is_reading(moment, local, zone)]
            return max(moment for moment in found if moment <= end)
        except OverflowError:
            raise UsageError(f"{self.text} lies before the year 1.") from None


Moment: TypeAlias = int | str | datetime | LogTime
"""An offset, or a time as text or a datetime, in UTC unless it has a time zone."""


def is_whole_number(text: str) -> bool:
    """Whether a text is an offset or milliseconds; `datetime` would read 20261121 as ISO 8601."""
    return _WHOLE_NUMBER.fullmatch(text) is not None


def offset_or_time(given: Any, zone: tzinfo = UTC) -> int | datetime | LogTime:
    """Parse an offset into an int, a time into an aware datetime in UTC, or into one relative to the end of a log.

    A time without a zone is in `zone`. Raises UsageError for any other value.
    """
    if isinstance(given, (datetime, LogTime)):
        return _known(given, zone)
    if isinstance(given, str):
        if is_whole_number(given):
            raise UsageError(f"{given!r} is not an offset: give an int, or milliseconds since 1970 as at_time.")
        return _parsed(given, zone, _NO_MOMENT)
    return whole(given, "an offset or a time")


def time_of(given: Any, zone: tzinfo = UTC) -> datetime | LogTime:
    """Parse a time like `offset_or_time`; a whole number, also as text, is milliseconds since 1970.

    Raises UsageError for any other value.
    """
    if isinstance(given, (datetime, LogTime)):
        return _known(given, zone)
    if isinstance(given, str) and not is_whole_number(given):
        return _parsed(given, zone, _NO_TIME)
    try:
        return EPOCH + timedelta(milliseconds=int(given) if isinstance(given, str) else whole(given, "a time"))
    except (ValueError, OverflowError):
        raise UsageError(f"{given!r} is {_NO_TIME}.") from None


def moment_of(at: Any, at_time: Any) -> int | datetime | LogTime | None:
    """Return the moment in one of two arguments; None if both are None. Raises UsageError if both are given."""
    if at_time is None:
        return None if at is None else offset_or_time(at)
    if at is not None:
        raise UsageError("Give either an offset or time, or at_time, not both.")
    return time_of(at_time)


def length_of_time(given: str) -> timedelta:
    """Parse a length of time: `15m`, `1h30m`, `2 days`; raises UsageError for any other text."""
    text, found = given.strip().lower(), timedelta()
    try:
        if _LENGTH.fullmatch(text) is None:
            raise ValueError
        for number, word in _PART_OF_LENGTH.findall(text):
            unit = _UNIT_WORDS.fullmatch(word)
            if unit is None:
                raise ValueError
            found += timedelta(seconds=float(number) * _UNITS[next(filter(None, unit.groups()))])
    except (ValueError, OverflowError):
        raise UsageError(f"{given!r} is not a length of time: give a number and s, m, h or d, as in 15m.") from None
    return found


def iso(time: datetime, zone: tzinfo | None = UTC) -> str:
    """Format an aware time as ISO 8601 to the millisecond: `2026-11-21 07:46:16.256Z`, `2026-11-21 08:46:16.256+01:00`.

    If `zone` is None, this machine's zone applies.
    """
    there = time.astimezone(zone)
    text = there.isoformat(sep=" ", timespec="milliseconds")
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _parsed(text: str, zone: tzinfo, refused: str) -> datetime | LogTime:
    try:
        counted = _from_the_end(text, zone)
        if counted is not None:
            return counted
        time = datetime.fromisoformat(text)
        is_day = len(text) <= len("2026-11-21")
        return _in_utc(time, zone) if time.tzinfo or is_day else _one_reading(text, time, zone)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is {refused}.") from None


def _from_the_end(text: str, zone: tzinfo) -> LogTime | None:
    """Parse a time relative to the end of a log; None for any other text."""
    plain = text.strip().lower()
    if back := _BEFORE_NOW.fullmatch(plain):
        return LogTime(text=plain, back=length_of_time(back[1]) if back[1] else timedelta(), zone=zone)
    day = _ON_A_DAY.fullmatch(plain)
    if day is None or not plain:
        return None
    hour, colon, rest = (day[2] or "00:00").upper().partition(":")
    clock = time.fromisoformat(f"{hour:0>2}{colon}{rest}")
    return LogTime(text=plain, clock=clock, days=_DAYS.get(day[1] or ""), zone=zone)


def _known(given: datetime | LogTime, zone: tzinfo) -> datetime | LogTime:
    return given if isinstance(given, LogTime) else _in_utc(given, zone)


def _readings(local: datetime, zone: tzinfo) -> list[datetime]:
    """Return the moments in UTC at which clocks in a zone show a time.

    For a skipped time, those by the offsets before and after.
    """
    return sorted({local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)})


def _is_reading(moment: datetime, local: datetime, zone: tzinfo) -> bool:
    return moment.astimezone(zone).replace(tzinfo=None) == local


def _one_reading(text: str, local: datetime, zone: tzinfo) -> datetime:
    """Return the moment at which clocks in a zone show a time; raises UsageError if they show it twice or never."""
    found = _readings(local, zone)
    if len(found) == 1:
        return found[0]
    is_twice = _is_reading(found[0], local, zone)
    problem, change = ("comes twice", "back") if is_twice else ("does not exist", "forward")
    forms = " or ".join(iso(moment, zone).replace(" ", "T") for moment in found)
    raise UsageError(f"{text} {problem} in {zone}, where clocks are set {change}: give {forms}.")


def _in_utc(time: datetime, zone: tzinfo) -> datetime:
    try:
        return (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        raise UsageError(f"{time.isoformat()} is not a time in UTC: it lies outside of the years 1 to 9999.") from None
