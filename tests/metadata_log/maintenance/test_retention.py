"""Which snapshots a policy keeps, and before which of them it trims a log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.maintenance.retention import (
    DAILY,
    DAY_MS,
    KEEP,
    NEWEST,
    Retention,
    TimedOffset,
    recorded,
)
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.runtime.errors import LakeError, UsageError

BEGIN = datetime(2025, 1, 1, 6, tzinfo=UTC)
HOURLY = [BEGIN + timedelta(hours=hour) for hour in range(24 * 100)]


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1_000)


def snapshots(times: list[datetime]) -> list[SnapshotFacts]:
    """One at each time; its end offset is its number, from 1 on."""
    return [
        SnapshotFacts(end_offset=number, epoch=1, last_contained_log_timestamp=ms(time))
        for number, time in enumerate(times, 1)
    ]


def records(times: list[datetime]) -> list[TimedOffset]:
    """Those before the end offsets of the snapshots."""
    return [TimedOffset(number, ms(time)) for number, time in enumerate(times)]


def test_of_hourly_snapshots_the_newest_one_a_day_and_one_a_month_stay() -> None:
    made, now = snapshots(HOURLY), ms(HOURLY[-1])
    kept = Retention(newest_snapshots=5, daily_days=10).stays(made, now)
    times = [HOURLY[end - 1] for end in sorted(kept)]
    newest, rest = times[-5:], times[:-5]
    assert newest == HOURLY[-5:]
    months = [time for time in rest if time < HOURLY[-1] - timedelta(days=10)]
    assert months == [BEGIN, *(datetime(2025, month, 1, tzinfo=UTC) for month in (2, 3, 4))]
    days = [time for time in rest if time >= HOURLY[-1] - timedelta(days=10)]
    assert len(days) == 10
    assert all(time.hour == 0 for time in days)


def test_a_daily_snapshot_goes_a_day_after_it_no_longer_counts_as_a_base() -> None:
    made, policy = snapshots(HOURLY), Retention(keep_ms=0, newest_snapshots=1, daily_days=10)
    first = next(one for one in made if one.last_contained_log_timestamp >= ms(HOURLY[-1]) - 10 * DAY_MS)
    daily = next(one for one in made if one.end_offset > first.end_offset and HOURLY[one.end_offset - 1].hour == 0)
    at = daily.last_contained_log_timestamp + 10 * DAY_MS
    for later, counts, goes in ((0, True, False), (1, False, False), (DAY_MS, False, False), (DAY_MS + 1, False, True)):
        assert (daily.end_offset in policy.stays(made, at + later)) == counts
        assert (daily in policy.dispensable(made, needed=(), now_ms=at + later)) == goes


def test_what_is_needed_has_no_time_or_begins_a_cluster_stays() -> None:
    made = [
        SnapshotFacts(end_offset=0, epoch=1, last_contained_log_timestamp=1),
        SnapshotFacts(end_offset=1, epoch=1, last_contained_log_timestamp=-1),
        *(SnapshotFacts(end_offset=end, epoch=1, last_contained_log_timestamp=5 + end) for end in (2, 3, 4, 5)),
    ]
    policy = Retention(newest_snapshots=1, daily_days=0)
    gone = policy.dispensable(made, needed=[4], now_ms=ms(BEGIN))
    assert [one.end_offset for one in gone] == [3], "2 is the first of its month, 5 the newest"


@given(
    hours=st.lists(st.integers(0, 24 * 400), min_size=1, max_size=60),
    newest=st.integers(1, 5),
    daily=st.integers(0, 60),
)
def test_deleting_twice_deletes_nothing_more_and_the_newest_one_always_stays(
    hours: list[int], newest: int, daily: int
) -> None:
    made = snapshots([BEGIN + timedelta(hours=hour) for hour in sorted(hours)])
    policy, now = Retention(newest_snapshots=newest, daily_days=daily), ms(BEGIN + timedelta(days=400))
    gone = policy.dispensable(made, needed=(), now_ms=now)
    left = [one for one in made if one not in gone]
    assert left[-1] == made[-1]
    assert len(left) >= min(newest, len(made))
    assert policy.dispensable(left, needed=(), now_ms=now) == []


def test_a_log_is_trimmed_before_snapshots_that_stay_and_are_past_the_window() -> None:
    made, now = snapshots(HOURLY), ms(HOURLY[-1])
    policy = Retention(keep_ms=7 * DAY_MS, newest_snapshots=24, daily_days=30)
    bases = policy.bases(made, records(HOURLY), now_ms=now)
    assert [HOURLY[one.end_offset - 1] for one in bases[:2]] == [
        (HOURLY[-1] - timedelta(days=7)).replace(hour=0), (HOURLY[-1] - timedelta(days=8)).replace(hour=0),
    ]  # fmt: skip
    assert {one.end_offset for one in bases} <= policy.stays(made, now)
    assert Retention(keep_ms=None).bases(made, records(HOURLY), now_ms=now) == []


@pytest.mark.parametrize("years", [1, 50])
def test_a_clock_that_jumps_makes_only_a_day_old(years: int) -> None:
    jump = timedelta(days=365 * years)
    times = [*HOURLY, HOURLY[-1] + jump]
    policy = Retention(keep_ms=30 * DAY_MS, newest_snapshots=24, daily_days=100 * 365)
    before = policy.bases(snapshots(HOURLY), records(HOURLY), now_ms=ms(HOURLY[-1]))[0]
    after = policy.bases(snapshots(times), records(times), now_ms=ms(times[-1]))[0]
    moved = after.last_contained_log_timestamp - before.last_contained_log_timestamp
    assert 0 <= moved <= DAY_MS


def test_time_that_nothing_was_recorded_in_counts_as_a_day_and_time_that_goes_back_as_none() -> None:
    points = [TimedOffset(*one) for one in ((0, 0), (9, 5), (10, 50 * DAY_MS), (19, 50 * DAY_MS + 7), (20, 3), (29, 2))]
    assert recorded(points)(0) == 5 + DAY_MS + 7
    assert recorded(points[::-1])(10) == 7
    assert recorded([TimedOffset(0, 0), TimedOffset(9, 90 * DAY_MS)])(0) == DAY_MS
    assert recorded(points)(30) == recorded([])(0) == 0


def test_snapshots_give_the_times_within_a_large_file() -> None:
    made, now = snapshots(HOURLY[::24]), ms(HOURLY[-24])
    ends = [TimedOffset(0, ms(HOURLY[0])), TimedOffset(99, now)]
    (base, *_) = Retention(keep_ms=7 * DAY_MS, newest_snapshots=24, daily_days=30).bases(made, ends, now_ms=now)
    assert base.last_contained_log_timestamp == now - 7 * DAY_MS


def test_a_policy_is_what_its_properties_say() -> None:
    for policy in (Retention(), Retention(keep_ms=5, newest_snapshots=1, daily_days=0)):
        assert Retention.declared_in({"delta.appendOnly": "true", **policy.properties}) == policy
    assert Retention.declared_in({"delta.appendOnly": "true"}) is None
    for name in (KEEP, NEWEST, DAILY):
        with pytest.raises(LakeError, match=f"{name} is 'ten', which is no number"):
            Retention.declared_in({**Retention().properties, name: "ten"})


@pytest.mark.parametrize("wrong", [{"newest_snapshots": 0}, {"daily_days": -1}, {"keep_ms": -1}])
def test_a_policy_that_keeps_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=r"A lake keeps 1 snapshot|no negative time"):
        Retention(**wrong)
