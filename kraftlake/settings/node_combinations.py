"""Combinations of a node's settings that Kafka refuses. Source: kafka.server.KafkaConfig (validateValues)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from kraftlake.runtime.java_values import parse_integer, split, trim
from kraftlake.settings.group_bounds import problems_of_bounds
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

_MEBIBYTE: Final = 1 << 20
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*")


def problem_of_combination(value: Callable[[str], Any]) -> str | None:
    """The reason why a node can't have its combination of settings, or None.

    `value` returns a setting, parsed, or its default.
    """
    return next(filter(None, _problems(value)), None)


def connections_by_host(overrides: str) -> dict[str, int]:
    """The maximum numbers of connections by host in `max.connections.per.ip.overrides`.

    Raises ValueError for invalid text.
    """
    limits = {}
    for one in split(trim(overrides)) if overrides else ():
        host, colon, limit = trim(one).rpartition(":")
        if not colon or not _HOST.fullmatch(trim(host)):
            raise ValueError(f"{one!r}, which is not of the form HOST:CONNECTIONS")
        limits[trim(host)] = parse_integer(trim(limit), 32)
    return limits


def _problems(value: Callable[[str], Any]) -> Iterator[str | None]:
    yield _refuse(_finest(value, "segment.ms") < 1, "log.roll.ms is below 1")
    yield _refuse(_finest(value, "segment.jitter.ms") < 0, "log.roll.jitter.ms is below 0")
    yield _refuse(_finest(value, "retention.ms") == 0, "log.retention.ms is 0: it is 1 at least, or -1 without limit")
    threads, buffer = value("log.cleaner.threads"), value("log.cleaner.dedupe.buffer.size")
    yield _refuse(
        threads == 0 or buffer // threads <= _MEBIBYTE,
        "log.cleaner.dedupe.buffer.size is not above 1 MiB for each of log.cleaner.threads",
    )
    for longer in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        yield _refuse(
            value("replica.fetch.wait.max.ms") > value(longer), f"replica.fetch.wait.max.ms is above {longer}"
        )
    queued = value("queued.max.request.bytes")
    yield _refuse(
        0 < queued < value("socket.request.max.bytes"), "queued.max.request.bytes is below socket.request.max.bytes"
    )
    yield _refuse(
        value("max.connections.per.ip") == 0 and not value("max.connections.per.ip.overrides"),
        "max.connections.per.ip is 0, and no max.connections.per.ip.overrides are given",
    )
    idle = value("connections.max.idle.ms")
    yield _refuse(
        0 <= idle <= value("connection.failed.authentication.delay.ms"),
        "connections.max.idle.ms is not above connection.failed.authentication.delay.ms",
    )
    try:
        connections_by_host(value("max.connections.per.ip.overrides"))
    except ValueError as problem:
        yield f"max.connections.per.ip.overrides has {problem}"
    yield from problems_of_bounds(value)


def _finest(value: Callable[[str], Any], config: str) -> int:
    """Return the value of the first explicit setting among the synonyms of a topic config."""
    found = map(value, TOPIC_CONFIGS[config].synonyms)
    return int(next(one for one in found if one is not None))


def _refuse(is_wrong: bool, problem: str) -> str | None:
    return problem if is_wrong else None
