"""An int is an offset, text or a datetime is a time, milliseconds have their own argument, now is a log's end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.moments import LogTime, iso, length_of_time, moment_of, offset_or_time, time_of

TIME = datetime(2026, 11, 21, 7, 46, 16, 256000, tzinfo=UTC)
MILLIS = 1795247176256


@pytest.mark.parametrize(
    "value",
    [
        TIME,
        TIME.replace(tzinfo=None),
        TIME.astimezone(timezone(timedelta(hours=5))),
        "2026-11-21T07:46:16.256Z",
        "2026-11-21 07:46:16.256",
        "2026-11-21T12:46:16.256+05:00",
    ],
)
def test_text_and_datetimes_are_times_in_utc_unless_they_name_a_zone(value: object) -> None:
    assert offset_or_time(value) == time_of(value) == TIME


def test_an_int_is_an_offset_and_milliseconds_only_where_a_time_is_asked_for() -> None:
    assert offset_or_time(MILLIS) == MILLIS
    assert time_of(MILLIS) == time_of(str(MILLIS)) == TIME
    assert moment_of(None, MILLIS) == TIME
    assert moment_of(458, None) == 458
    assert moment_of(None, None) is None


@pytest.mark.parametrize("value", ["458", " -1", "20261121", "tomorrow", "", 1.5, True, b"1", 2**70])
def test_values_that_are_ambiguous_or_neither_offset_nor_time_are_refused(value: object) -> None:
    with pytest.raises(UsageError, match=r"is (not an offset|neither an offset nor a time)"):
        offset_or_time(value)


@pytest.mark.parametrize("value", ["soon", True, 1.5, 2**62, "9" * 5000, datetime.max.replace(tzinfo=timezone.min)])
def test_invalid_times_are_refused(value: object) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        time_of(value)


def test_an_offset_and_a_time_together_are_refused() -> None:
    with pytest.raises(UsageError, match="not both"):
        moment_of(458, TIME)


def test_a_time_is_shown_to_the_millisecond() -> None:
    assert iso(TIME) == "2026-11-21 07:46:16.256Z"


END = datetime(2026, 11, 21, 7, 50, 33, 79000, tzinfo=UTC)


def fixed(text: str, end: datetime = END, zone: tzinfo = UTC) -> datetime:
    """The time that a text stands for in a log that ends at `end`."""
    found = offset_or_time(text, zone)
    assert not isinstance(found, int)
    return found.before(end) if isinstance(found, LogTime) else found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", END),
        ("now-15m", END - timedelta(minutes=15)),
        ("NOW - 1h30m", END - timedelta(minutes=90)),
        ("now-2 days", END - timedelta(days=2)),
        ("now-1.5s", END - timedelta(seconds=1.5)),
        ("07:46", datetime(2026, 11, 21, 7, 46, tzinfo=UTC)),
        ("7:46:16.256", TIME),
        ("07:50:33.080", datetime(2026, 11, 20, 7, 50, 33, 80000, tzinfo=UTC)),
        ("08:46+01:00", datetime(2026, 11, 21, 7, 46, tzinfo=UTC)),
        ("20:46-11:00", datetime(2026, 11, 21, 7, 46, tzinfo=UTC)),
        ("today", datetime(2026, 11, 21, tzinfo=UTC)),
        ("yesterday", datetime(2026, 11, 20, tzinfo=UTC)),
        ("Yesterday 23:10", datetime(2026, 11, 20, 23, 10, tzinfo=UTC)),
        ("today 09:00", datetime(2026, 11, 21, 9, tzinfo=UTC)),
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=UTC)),
    ],
)
def test_times_count_from_the_end_of_a_log(text: str, expected: datetime) -> None:
    assert fixed(text) == expected


@given(
    end=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Apia"]),
)
def test_a_time_of_day_is_the_last_one_at_or_before_the_end(end: datetime, hour: int, minute: int, zone: str) -> None:
    found = fixed(f"{hour:02}:{minute:02}", end, ZoneInfo(zone))
    minutes = (end.replace(second=0, microsecond=0) - timedelta(minutes=back) for back in range(3 * 24 * 60))
    by_search = next(
        one for one in minutes if (there := one.astimezone(ZoneInfo(zone))).hour == hour and there.minute == minute
    )
    if found != by_search:  # a time of day that clocks jumped over on its last day
        there = found.astimezone(ZoneInfo(zone))
        assert (there.hour, there.minute) != (hour, minute)
        assert by_search < found <= end


def test_where_clocks_are_set_back_the_later_of_two_times_counts_if_the_log_reaches_it() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert fixed("02:30", datetime(2026, 10, 25, 1, 45, tzinfo=UTC), berlin).hour == 1
    assert fixed("02:30", datetime(2026, 10, 25, 1, 15, tzinfo=UTC), berlin).hour == 0


def test_times_that_name_no_zone_are_of_the_zone_that_is_given() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert fixed("2026-11-21T08:46:16.256", zone=berlin) == TIME
    assert fixed("2026-11-21T07:46:16.256Z", zone=berlin) == TIME
    assert fixed("today", zone=berlin) == datetime(2026, 11, 20, 23, tzinfo=UTC)
    assert iso(TIME, berlin) == "2026-11-21 08:46:16.256+01:00"
    assert iso(TIME, ZoneInfo("Europe/London")) == "2026-11-21 07:46:16.256Z"


@pytest.mark.parametrize(
    "text", ["now+1h", "now-", "25:00", "07:60", "7", "yesterday-1h", "yesterday 25:00", "nowadays"]
)
def test_texts_that_look_like_times_and_are_none_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"is (not an offset|neither an offset nor a time)"):
        offset_or_time(text)


@pytest.mark.parametrize("text", ["", "15", "m", "15x", "1h 30", "-5m", "99999999999d", "1..5s"])
def test_texts_that_are_no_length_of_time_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a length of time"):
        length_of_time(text)


def test_a_time_before_the_year_1_is_refused() -> None:
    with pytest.raises(UsageError, match="before the year 1"):
        fixed("now-3000000d")


BERLIN, HAVANA = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Havana")


@pytest.mark.parametrize("text", ["2026-10-25T02:30", "2026-10-25 02:30:00", "today 02:30", "yesterday 02:30"])
def test_a_time_that_comes_twice_is_refused_with_both(text: str) -> None:
    end = datetime(2026, 10, 26 if text.startswith("yes") else 25, 9, tzinfo=UTC)
    message = "comes twice in Europe/Berlin, where clocks are set back: give 2026-10-25T02:30:00.000[+]02:00 or "
    with pytest.raises(UsageError, match=message + "2026-10-25T02:30:00.000[+]01:00"):
        fixed(text, end, BERLIN)
    assert fixed("2026-10-25T02:30+01:00", end, BERLIN) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-03-29T02:30", "today 02:30"])
def test_a_time_that_clocks_skip_is_refused_with_those_around(text: str) -> None:
    message = "does not exist in Europe/Berlin, where clocks are set forward: give 2026-03-29T01:30:00.000[+]01:00 or "
    with pytest.raises(UsageError, match=message + "2026-03-29T03:30:00.000[+]02:00"):
        fixed(text, datetime(2026, 3, 29, 9, tzinfo=UTC), BERLIN)


def test_a_time_of_day_is_the_last_one_that_came() -> None:
    after_both = datetime(2026, 10, 25, 9, tzinfo=UTC)
    assert fixed("02:30", after_both, BERLIN) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert fixed("02:30", datetime(2026, 10, 25, 1, tzinfo=UTC), BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert fixed("02:30", datetime(2026, 3, 29, 9, tzinfo=UTC), BERLIN) == datetime(2026, 3, 28, 1, 30, tzinfo=UTC)


def test_a_day_begins_with_its_first_moment() -> None:
    """In Havana clocks go from 0:00 to 1:00 in March, and from 1:00 to 0:00 in November."""
    assert fixed("today", datetime(2026, 3, 8, 20, tzinfo=UTC), HAVANA) == datetime(2026, 3, 8, 5, tzinfo=UTC)
    assert fixed("today", datetime(2026, 11, 1, 20, tzinfo=UTC), HAVANA) == datetime(2026, 11, 1, 4, tzinfo=UTC)
    assert fixed("2026-03-08", zone=HAVANA) == datetime(2026, 3, 8, 5, tzinfo=UTC)
    assert fixed("2026-W44-7", zone=HAVANA) == datetime(2026, 11, 1, 4, tzinfo=UTC)
    with pytest.raises(UsageError, match="comes twice"):
        fixed("2026-11-01T00:00", zone=HAVANA)
