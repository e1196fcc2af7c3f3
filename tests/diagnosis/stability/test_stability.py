"""Hours against the hours of the past, and the numbers of brokers."""

from __future__ import annotations

from pathlib import Path

import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.runtime.errors import UsageError
from tests.replay.made_logs import data, metadata_version, partition, topic, uuid_of, write_directory

HOUR = 3_600_000


def flaps(hours: list[int]) -> list[list[r.PartitionChangeRecord]]:
    """For each hour the records by which broker 2 leaves an ISR and joins it again, so many times."""
    change = {"partition_id": 0, "topic_id": uuid_of(1)}
    pair = [r.PartitionChangeRecord(isr=isr, **change) for isr in ((1,), (1, 2))]
    return [pair * count for count in hours]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A log of ten hours, in most of which a replica leaves an ISR once or twice, and in the ninth eight times."""
    log = [data(0, metadata_version(), topic(1), partition(1, replicas=(1, 2), isr=(1, 2)), time=0)]
    for hour, records in enumerate(flaps([1, 2, 1, 0, 2, 1, 1, 2, 8, 1])):
        if hour in (3, 7):
            leader = LeaderChangeMessage(version=0, leader_id=3000)
            log.append(RecordBatch.control_of(log[-1].last_offset + 1, hour, hour * HOUR, [leader]))
        if records:
            log.append(data(log[-1].last_offset + 1, *records, epoch=log[-1].epoch, time=hour * HOUR + 1))
    return kraftlake.open(write_directory(tmp_path, log))


def shrinks(source: Source, *range_: int) -> list[tuple[int | None, int, float | None, float | None, int | None]]:
    found = source.stability(*range_).counts
    return [(one.hour, one.count, one.median, one.level, one.unusual) for one in found if one.kind == "isr_shrinks"]


def test_an_hour_is_compared_with_all_hours_where_the_range_has_no_past(source: Source) -> None:
    level = 1 + 3 * 1.4826 * 0.5  # the deviations from the median are 0, 1, 0, 1, 1, 0, 0, 1, 7 and 0
    assert [one[:2] for one in shrinks(source)] == [
        (hour * HOUR, count) for hour, count in enumerate([1, 2, 1, 0, 2, 1, 1, 2, 8, 1]) if count
    ]
    assert {one[2:4] for one in shrinks(source)} == {(1.0, max(level, 4))}
    assert [one[0] for one in shrinks(source) if one[4]] == [8 * HOUR]


def test_an_hour_is_compared_with_those_before_the_range_where_there_are_enough(source: Source) -> None:
    first = 3 + 2 * 10 + 2
    (ninth, tenth) = shrinks(source, first)
    assert ninth == (8 * HOUR, 8, 1.0, 4, 1)
    assert tenth == (9 * HOUR, 1, 1.0, 4, 0)
    assert source.stability(first).past_hours == 8
    assert source.stability(5).past_hours == 10


def test_a_broker_has_the_sum_of_its_hours_and_those_that_are_unusual(source: Source) -> None:
    found = {(one.broker, one.kind): one for one in source.stability(by="broker").counts}
    one = found[2, "isr_shrinks"]
    assert (one.count, one.orderly, one.median, one.unusual, one.hour) == (19, 0, 1.0, 1, None)
    assert {broker for broker, _ in found} == {2, None}
    assert found[None, "controller_changes"].count == 2


def test_a_short_log_has_no_level(tmp_path: Path) -> None:
    log = [data(0, metadata_version(), topic(1), partition(1, replicas=(1, 2), isr=(1, 2)), time=0)]
    log.append(data(3, *flaps([9])[0], time=5 * HOUR - 1))
    found = kraftlake.open(write_directory(tmp_path, log)).stability()
    assert (found.past_hours, found.has_level) == (5, False)
    assert {(one.median, one.level, one.unusual) for one in found.counts} == {(None, None, None)}


def test_times_that_are_far_apart_take_no_room(tmp_path: Path) -> None:
    log = [data(0, metadata_version(), topic(1), partition(1, replicas=(1, 2), isr=(1, 2)), time=0)]
    log.append(data(3, *flaps([9])[0], time=2**47))
    (shrunk,) = shrinks(kraftlake.open(write_directory(tmp_path, log)))
    assert shrunk[1:] == (9, 0.0, 4, 1)


def test_counts_are_by_hour_or_broker(source: Source) -> None:
    with pytest.raises(UsageError, match="by hour or by broker, not by 'day'"):
        source.stability(by="day")
