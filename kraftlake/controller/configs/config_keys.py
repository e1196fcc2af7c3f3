"""The definition of a config: type, default and validator; values are parsed and refused as in Kafka.

Source: org.apache.kafka.common.config.ConfigDef (parseType, Range, ValidString, ValidList), the validators of
LogConfig and GroupConfig.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs

from kraftlake.records.java_values import (
    parse_boolean,
    parse_double,
    parse_duration,
    parse_integer,
    split_list,
    trim,
)

Check: TypeAlias = Callable[[Any], str | None]
"""A validator: the reason why a parsed value is refused, or None."""

_THROTTLED: Final = re.compile(r"(?:[0-9]+:[0-9]+)?")
_BY_DURATION: Final = "by_duration:"


@attrs.frozen
class ConfigKey:
    """A config: its type (BOOLEAN, INT, LONG, DOUBLE, STRING, LIST), its default (or None) and its validator.

    `synonyms` are the broker configs that a topic config falls back on; the first one that is set counts.
    """

    type: str
    default: str | None
    check: Check | None = None
    synonyms: tuple[str, ...] = ()

    def parse(self, text: str) -> Any:
        """Parse a value; ValueError with the reason if the config can't have it."""
        value = self._parse(trim(text))
        problem = None if self.check is None else self.check(value)
        if problem is not None:
            raise ValueError(problem)
        return value

    def _parse(self, text: str) -> Any:
        match self.type:
            case "BOOLEAN":
                return parse_boolean(text)
            case "INT":
                return parse_integer(text, 32)
            case "LONG":
                return parse_integer(text, 64)
            case "DOUBLE":
                return parse_double(text)
            case "LIST":
                return split_list(text) if text else []
            case _:
                return text


def at_least(low: int) -> Check:
    """A number of at least `low`; NaN passes, since every comparison with it is false."""
    return lambda value: f"it is below {low}" if value < low else None


def between(low: int, high: int) -> Check:
    """A number from `low` to `high`; NaN passes."""

    def check(value: float) -> str | None:
        return f"it is above {high}" if value > high else at_least(low)(value)

    return check


def gzip_level(value: int) -> str | None:
    """A compression level of gzip: 1 to 9, or -1 for its default."""
    return None if value == -1 else between(1, 9)(value)


def one_of(*values: str) -> Check:
    """One of some strings."""
    return lambda value: None if value in values else f"{value!r} is none of {', '.join(values)}"


def members(*values: str) -> Check:
    """A list without empty members, all of `values` if any are given."""

    def check(value: list[str]) -> str | None:
        for member in value:
            if not member:
                return "a member of the list is empty"
            if values and member not in values:
                return f"{member!r} is none of {', '.join(values)}"
        return None

    return check


def throttled_replicas(value: list[str]) -> str | None:
    """Pairs partition:broker, or * for all replicas; empty members are ignored."""
    trimmed = [trim(member) for member in value]
    if "".join(trimmed) == "*":
        return None
    wrong = next((member for member in trimmed if not _THROTTLED.fullmatch(member)), None)
    return None if wrong is None else f"{wrong!r} is not of the form partition:broker"


def auto_offset_reset(value: str) -> str | None:
    """The start of a share group: earliest, latest, or by_duration: with an ISO 8601 duration that is not negative."""
    if value in ("earliest", "latest"):
        return None
    if not value.startswith(_BY_DURATION):
        return f"{value!r} is none of earliest, latest, {_BY_DURATION}PnDTnHnMn.nS"
    try:
        duration = parse_duration(value.removeprefix(_BY_DURATION))
    except ValueError as problem:
        return str(problem)
    return "the duration is negative" if duration < 0 else None
