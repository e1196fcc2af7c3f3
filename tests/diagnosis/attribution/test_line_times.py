"""Times in front of messages: layouts of log4j and others, with zones and without."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from kraftlake.diagnosis.attribution.line_times import LineTime, in_zone, time_in, time_of_fields, time_of_value

MOMENT = 1795247176256  # 2026-11-21 07:46:16.256Z


@pytest.mark.parametrize(
    ("text", "has_zone"),
    [
        ("[2026-11-21 07:46:16,256] DEBUG ", False),
        ("2026-11-21T07:46:16,256 [data-plane-kafka-request-handler-1] INFO ", False),
        ("2026-11-21 07:46:16.256000 DEBUG ", False),
        ("2026/11/21 07:46:16.256 ", False),
        ("21 Nov 2026 07:46:16,256 ", False),
        ("20261121074616256 ", False),
        ("2026-11-21T07:46:16.256Z ", True),
        ("2026-11-21 07:46:16.256 UTC ", True),
        ("2026-11-21T08:46:16.256+0100 ", True),
        ("2026-11-21T02:16:16.256-05:30 ", True),
        ("21/Nov/2026:09:46:16.256 +0200 ", True),
        ("1795247176256 DEBUG ", True),
        ("1795247176.256 DEBUG ", True),
        ("Nov 21 07:46:16 host kafka[812]: [2026-11-21 07:46:16,256] DEBUG ", False),
        ("2026-11-21T07:46:16.256Z stdout F [2026-11-21 08:46:16,255] DEBUG ", True),
    ],
)
def test_the_layouts_of_a_time(text: str, has_zone: bool) -> None:
    assert time_in(text) == LineTime(MOMENT, has_zone, True)


@pytest.mark.parametrize(
    "text", ["07:46:16,256 DEBUG ", "DEBUG ", "2026-13-41 07:46:16,256 ", "812 [main] INFO ", "Nov 21"]
)
def test_a_time_without_a_date_is_none(text: str) -> None:
    assert time_in(text) is None


def test_a_time_in_whole_seconds_has_no_fraction() -> None:
    assert time_in("2026-11-21 07:46:16 DEBUG ") == LineTime(MOMENT - 256, False, False)


@pytest.mark.parametrize(
    ("fields", "has_zone"),
    [
        ({"@timestamp": "2026-11-21T07:46:16.256Z"}, True),
        ({"level": "DEBUG", "instant": {"epochSecond": 1795247176, "nanoOfSecond": 256_000_000}}, True),
        ({"timeMillis": MOMENT}, True),
        ({"time": 1795247176.256}, True),
        ({"timestamp": "2026-11-21 07:46:16,256"}, False),
    ],
)
def test_the_times_of_json_layouts(fields: dict[str, Any], has_zone: bool) -> None:
    assert time_of_fields(fields) == LineTime(MOMENT, has_zone, True)


@pytest.mark.parametrize("value", [None, True, [], {"epochSecond": "1"}, "soon"])
def test_other_values_are_no_times(value: object) -> None:
    assert time_of_value(value) is None


def test_a_local_time_that_comes_twice_or_never_is_no_moment() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert in_zone(MOMENT, berlin) == MOMENT - 3_600_000
    assert in_zone(MOMENT, timezone(timedelta(hours=-2))) == MOMENT + 7_200_000
    twice, never = time_in("2026-10-25 02:30:00,0"), time_in("2026-03-29 02:30:00,0")
    assert twice is not None
    assert never is not None
    assert in_zone(twice.milliseconds, berlin) is None
    assert in_zone(never.milliseconds, berlin) is None
    assert in_zone(twice.milliseconds, UTC) == twice.milliseconds
