"""The times that logging frameworks write in front of a message, in the common layouts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, NamedTuple

from kraftlake.runtime.moments import EPOCH

_CLOCK: Final = r"(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(?:[.,:](?P<f>\d{1,9}))?"
_ZONE: Final = r"(?: ?(?P<z>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)(?![\w:]))?"
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FORMS: Final = (
    re.compile(rf"(?<!\d)(?P<y>\d{{4}})([-/])(?P<m>\d\d)\2(?P<d>\d\d)[ T_]{_CLOCK}{_ZONE}"),
    re.compile(rf"(?<!\d)(?P<d>\d\d?)[ /-](?P<m>[A-Za-z]{{3}})[ /-](?P<y>\d{{4}})[ :]{_CLOCK}{_ZONE}"),
    re.compile(
        r"(?<!\d)(?P<y>20\d\d)(?P<m>\d\d)(?P<d>\d\d)[-T ]?(?P<H>\d\d)(?P<M>\d\d)(?P<S>\d\d)[.,]?(?P<f>\d{3})?(?!\d)"
        + _ZONE
    ),
)
"""ISO 8601 and log4j's DEFAULT, log4j's DATE, log4j's COMPACT."""
_EPOCH_TIME: Final = re.compile(r"\W*(?P<s>\d{10})(?:(?P<ms>\d{3})|[.,](?P<f>\d{1,9}))?(?!\d)")
_JSON_KEYS: Final = ("@timestamp", "timestamp", "time", "ts", "@t", "datetime", "date", "instant", "timeMillis")
_MILLISECONDS_FROM: Final = 10**11
"""The smallest number that counts milliseconds since 1970; smaller ones count seconds."""


class LineTime(NamedTuple):
    """A time as a line has it: milliseconds since 1970, of the local clock where the line states no zone."""

    milliseconds: int
    has_zone: bool
    has_fraction: bool


def time_in(text: str) -> LineTime | None:
    """The first time in a text, or the first one with a zone if any has one; None without one that has a date."""
    found = [time for form in _FORMS for match in form.finditer(text) if (time := _of_match(match)) is not None]
    epoch = _EPOCH_TIME.match(text)
    if epoch is not None:
        fraction = (epoch["ms"] or epoch["f"] or "").ljust(3, "0")[:3]
        found.append(LineTime(int(epoch["s"]) * 1000 + int(fraction), True, bool(epoch["ms"] or epoch["f"])))
    return next((time for time in found if time.has_zone), found[0] if found else None)


def time_of_value(value: Any) -> LineTime | None:
    """The time that a value of JSON is: text, a number since 1970, or log4j's instant; None for any other value."""
    if isinstance(value, str):
        return time_in(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        milliseconds = value if abs(value) >= _MILLISECONDS_FROM else value * 1000
        return LineTime(int(milliseconds), True, abs(value) >= _MILLISECONDS_FROM or isinstance(value, float))
    if isinstance(value, Mapping) and isinstance(seconds := value.get("epochSecond"), int):
        nanoseconds = value.get("nanoOfSecond", 0)
        return LineTime(seconds * 1000 + nanoseconds // 1_000_000, True, True) if isinstance(nanoseconds, int) else None
    return None


def time_of_fields(fields: Mapping[str, Any]) -> LineTime | None:
    """The time of an object of a JSON layout, by the keys that layouts use."""
    times = (time_of_value(fields[key]) for key in _JSON_KEYS if key in fields)
    return next((time for time in times if time is not None), None)


def in_zone(local: int, zone: tzinfo) -> int | None:
    """The moment (epoch ms) at which clocks of a zone show a local time; None where they show it twice, or never."""
    shown = EPOCH.replace(tzinfo=None) + timedelta(milliseconds=local)
    readings = {shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    (moment, *others) = readings
    return None if others else round((moment - EPOCH) / timedelta(milliseconds=1))


def _of_match(match: re.Match[str]) -> LineTime | None:
    month = match["m"]
    number = int(month) if month.isdecimal() else _MONTHS.index(month.lower()) + 1 if month.lower() in _MONTHS else 0
    try:
        local = datetime(
            int(match["y"]), number, int(match["d"]), int(match["H"]), int(match["M"]), int(match["S"]), tzinfo=UTC
        )
    except ValueError:
        return None
    fraction, zone = match["f"], match["z"]
    milliseconds = round((local - EPOCH) / timedelta(seconds=1)) * 1000 + int((fraction or "").ljust(3, "0")[:3])
    if zone is None:
        return LineTime(milliseconds, False, fraction is not None)
    if zone[0] in "+-":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        away = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
        milliseconds += away if zone[0] == "-" else -away
    return LineTime(milliseconds, True, fraction is not None)
