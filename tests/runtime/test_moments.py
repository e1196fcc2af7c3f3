"""An int is an offset, text or a datetime is a time, milliseconds have their own argument."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import iso, moment_of, offset_or_time, time_of

TIME = datetime(2026, 11, 21, 7, 46, 16, 256000, tzinfo=UTC)
MILLIS = 1795247176256


@pytest.mark.parametrize(
    "given",
    [
        TIME,
        TIME.replace(tzinfo=None),
        TIME.astimezone(timezone(timedelta(hours=5))),
        "2026-11-21T07:46:16.256Z",
        "2026-11-21 07:46:16.256",
        "2026-11-21T12:46:16.256+05:00",
    ],
)
def test_text_and_datetimes_are_times_in_utc_unless_they_name_a_zone(given: object) -> None:
    assert offset_or_time(given) == time_of(given) == TIME


def test_an_int_is_an_offset_and_milliseconds_only_where_a_time_is_asked_for() -> None:
    assert offset_or_time(MILLIS) == MILLIS
    assert time_of(MILLIS) == time_of(str(MILLIS)) == TIME
    assert moment_of(None, MILLIS) == TIME
    assert moment_of(458, None) == 458
    assert moment_of(None, None) is None


@pytest.mark.parametrize("given", ["458", " -1", "20261121", "yesterday", "", 1.5, True, b"1", 2**70])
def test_values_that_are_ambiguous_or_neither_offset_nor_time_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match=r"is (not an offset|neither an offset nor a time)"):
        offset_or_time(given)


@pytest.mark.parametrize("given", ["soon", True, 1.5, 2**62, "9" * 5000, datetime.max.replace(tzinfo=timezone.min)])
def test_invalid_times_are_refused(given: object) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        time_of(given)


def test_an_offset_and_a_time_together_are_refused() -> None:
    with pytest.raises(UsageError, match="not both"):
        moment_of(458, TIME)


def test_a_time_is_shown_to_the_millisecond() -> None:
    assert iso(TIME) == "2026-11-21 07:46:16.256Z"
