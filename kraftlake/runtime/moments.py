"""Moments of a log in arguments: an int is an offset, text or a datetime is a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from kraftlake.runtime.arguments import whole
from kraftlake.runtime.errors import UsageError

Moment: TypeAlias = int | str | datetime
"""An offset, or a time as ISO 8601 or a datetime, in UTC unless it has a time zone."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_NUMBER = re.compile(r"\s*[+-]?\d+\s*")
_NO_TIME = "not a time: give ISO 8601 (2026-11-21T08:00:00Z) or milliseconds since 1970"


def is_whole_number(text: str) -> bool:
    """Whether a text is an offset or milliseconds; `datetime` would read 20261121 as ISO 8601."""
    return _WHOLE_NUMBER.fullmatch(text) is not None


def offset_or_time(given: Any) -> int | datetime:
    """An offset as an int, or a time as an aware datetime in UTC. Raises UsageError for any other value."""
    if isinstance(given, datetime):
        return _in_utc(given)
    if isinstance(given, str):
        if is_whole_number(given):
            raise UsageError(f"{given!r} is not an offset: give an int, or milliseconds since 1970 as at_time.")
        return _parsed(given, "neither an offset nor a time: give a whole number, or ISO 8601 (2026-11-21T08:00:00Z)")
    return whole(given, "an offset or a time")


def time_of(given: Any) -> datetime:
    """A time as an aware datetime in UTC: milliseconds since 1970 (also as text), ISO 8601 or a datetime.

    Raises UsageError for any other value.
    """
    if isinstance(given, datetime):
        return _in_utc(given)
    if isinstance(given, str) and not is_whole_number(given):
        return _parsed(given, _NO_TIME)
    try:
        return EPOCH + timedelta(milliseconds=int(given) if isinstance(given, str) else whole(given, "a time"))
    except (ValueError, OverflowError):
        raise UsageError(f"{given!r} is {_NO_TIME}.") from None


def moment_of(at: Any, at_time: Any) -> int | datetime | None:
    """The moment in one of two arguments; None if both are None, UsageError if both are given."""
    if at_time is None:
        return None if at is None else offset_or_time(at)
    if at is not None:
        raise UsageError("Give either an offset or time, or at_time, not both.")
    return time_of(at_time)


def iso(time: datetime) -> str:
    """An aware time as ISO 8601 in UTC, to the millisecond: `2026-11-21 07:46:16.256Z`."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')}Z"


def _parsed(text: str, refused: str) -> datetime:
    try:
        return _in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is {refused}.") from None


def _in_utc(time: datetime) -> datetime:
    try:
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise UsageError(f"{time.isoformat()} is not a time in UTC: it lies outside of the years 1 to 9999.") from None
