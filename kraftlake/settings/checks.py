"""The validators of configs, which refuse the same values as Kafka's.

Source: org.apache.kafka.common.config.ConfigDef (Range, ValidString, ValidList), and the validators of LogConfig,
GroupConfig and QuorumConfig.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from kraftlake.runtime.java_values import parse_duration, parse_integer, trim

Check: TypeAlias = Callable[[Any], str | None]
"""A validator: the reason why a parsed value is refused, or None."""

_THROTTLED: Final = re.compile(r"(?:[0-9]+:[0-9]+)?")
_BY_DURATION: Final = "by_duration:"
_HOST_AND_PORT: Final = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_LARGEST_PORT: Final = 65_535


def at_least(low: float) -> Check:
    """Accept numbers of at least `low`; NaN passes, since every comparison with NaN is false."""
    return lambda value: f"it is below {low}" if value < low else None


def between(low: float, high: float) -> Check:
    """Accept numbers from `low` to `high`; NaN passes."""

    def check(value: float) -> str | None:
        return f"it is above {high}" if value > high else at_least(low)(value)

    return check


def gzip_level(value: int) -> str | None:
    """Accept compression levels of gzip: 1 to 9, or -1 for the default."""
    return None if value == -1 else between(1, 9)(value)


def one_of(*values: str) -> Check:
    """Accept some strings."""
    return lambda value: None if value in values else f"{value!r} is none of {', '.join(values)}"


def one_of_ignoring_case(*values: str) -> Check:
    """Accept some upper-case strings, in any case."""
    return lambda value: None if value.upper() in values else f"{value!r} is none of {', '.join(values)}"


def not_empty(value: str) -> str | None:
    """Accept non-empty strings."""
    return None if value else "it is empty"


def members(*values: str) -> Check:
    """Accept lists without empty members, all of `values` if any are given."""

    def check(value: list[str]) -> str | None:
        for member in value:
            if not member:
                return "a member of the list is empty"
            if values and member not in values:
                return f"{member!r} is none of {', '.join(values)}"
        return None

    return check


def some_members(*values: str) -> Check:
    """Accept the same lists as `members`, except the empty one."""
    return lambda value: members(*values)(value) if value else "the list is empty"


def host_ports(value: list[str]) -> str | None:
    """Accept pairs HOST:PORT."""
    return next(filter(None, map(_problem_of_address, value)), None)


def voters(value: list[str]) -> str | None:
    """Accept voters of a quorum, each as ID@HOST:PORT."""
    for member in value:
        id_, at, address = member.partition("@")
        if not at or "@" in address.rstrip("@"):
            return f"{member!r} is not of the form ID@HOST:PORT"
        try:
            parse_integer(id_, 32)
        except ValueError as problem:
            return f"{id_!r} is no node id: {problem}"
        if (problem_of_address := _problem_of_address(address.rstrip("@"))) is not None:
            return problem_of_address
    return None


def _problem_of_address(text: str) -> str | None:
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None:
        return f"{text!r} is not of the form HOST:PORT"
    return None if int(match[2]) <= _LARGEST_PORT else f"the port of {text!r} is above {_LARGEST_PORT}"


def throttled_replicas(value: list[str]) -> str | None:
    """Accept pairs partition:broker, or * for all replicas; empty members are ignored."""
    trimmed = [trim(member) for member in value]
    if "".join(trimmed) == "*":
        return None
    wrong = next((member for member in trimmed if not _THROTTLED.fullmatch(member)), None)
    return None if wrong is None else f"{wrong!r} is not of the form partition:broker"


def auto_offset_reset(value: str) -> str | None:
    """Accept the start of a share group: earliest, latest, or by_duration: with a non-negative ISO 8601 duration."""
    if value in ("earliest", "latest"):
        return None
    if not value.startswith(_BY_DURATION):
        return f"{value!r} is none of earliest, latest, {_BY_DURATION}PnDTnHnMn.nS"
    try:
        duration = parse_duration(value.removeprefix(_BY_DURATION))
    except ValueError as problem:
        return str(problem)
    return "the duration is negative" if duration < 0 else None
