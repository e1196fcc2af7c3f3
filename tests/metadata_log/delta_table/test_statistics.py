from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.metadata_log.delta_table.statistics import (
    GrowingStatistics,
    epoch_milliseconds,
    file_statistics,
    iso_milliseconds,
    may_hold_time_before,
)

FIRST_US = -62_135_596_800_000_000
LAST_US = 253_402_300_799_999_000


def times(*values: int | None) -> pa.Table:
    return pa.table({"timestamp": pa.array(values, pa.int64()).cast(pa.timestamp("us", tz="UTC"))})


def add_of(rows: pa.Table) -> AddFile:
    stats = file_statistics(rows, ["timestamp"]).to_json()
    return AddFile(path="f", size=1, modification_time=0, stats=stats)


def test_bounds_and_nulls_are_those_of_the_rows() -> None:
    rows = pa.table({"offset": pa.array([3, 1, 2], pa.int64()), "type": ["b", "a", None]})
    found = file_statistics(rows, ["offset", "type"])
    assert (found.record_count, found.null_counts) == (3, {"offset": 0, "type": 1})
    assert (found.min_values, found.max_values) == ({"offset": 1, "type": "a"}, {"offset": 3, "type": "b"})


def test_a_time_between_two_milliseconds_is_rounded_up_where_it_is_the_largest() -> None:
    found = file_statistics(times(1_000_001, 2_000_001), ["timestamp"])
    assert found.min_values["timestamp"] == "1970-01-01T00:00:01.000Z"
    assert found.max_values["timestamp"] == "1970-01-01T00:00:02.001Z"


@given(st.lists(st.one_of(st.none(), st.integers(FIRST_US, LAST_US)), min_size=1))
def test_bounds_enclose_all_times(values: list[int | None]) -> None:
    found = file_statistics(times(*values), ["timestamp"])
    there = [value for value in values if value is not None]
    assert found.null_counts["timestamp"] == len(values) - len(there)
    if not there:
        assert "timestamp" not in found.min_values
        return
    low = epoch_milliseconds(found.min_values["timestamp"])
    high = epoch_milliseconds(found.max_values["timestamp"])
    assert low is not None
    assert high is not None
    assert low * 1000 <= min(there) < low * 1000 + 1000
    assert high * 1000 - 1000 < max(there) <= high * 1000


@pytest.mark.parametrize("value", [FIRST_US - 1, LAST_US + 1, 2**63 - 1, -(2**63)])
def test_a_time_that_no_calendar_has_leaves_its_column_without_bounds(value: int) -> None:
    assert file_statistics(times(0, value), ["timestamp"]).max_values == {}


@given(st.integers(FIRST_US // 1000, LAST_US // 1000))
def test_iso_times_are_read_back(epoch_ms: int) -> None:
    assert epoch_milliseconds(iso_milliseconds(epoch_ms)) == epoch_ms


def test_times_in_other_writers_forms_are_understood() -> None:
    assert epoch_milliseconds("2023-11-14T22:13:20.000+00:00") == 1_700_000_000_000
    assert epoch_milliseconds("2023-11-14T23:13:20.000+01:00") == 1_700_000_000_000
    assert epoch_milliseconds("2023-11-14 22:13:20") == 1_700_000_000_000
    assert epoch_milliseconds("soon") is None
    assert epoch_milliseconds(17) is None


def test_a_file_is_passed_over_only_when_all_its_times_are_later() -> None:
    assert may_hold_time_before(add_of(times(5000, 9000)), 5)
    assert not may_hold_time_before(add_of(times(5000, 9000)), 4)
    assert not may_hold_time_before(add_of(times(None)), 4)
    assert may_hold_time_before(AddFile(path="f", size=1, modification_time=0, stats=None), 4)
    assert may_hold_time_before(AddFile(path="f", size=1, modification_time=0, stats="torn{"), 4)


@given(st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), min_size=1, max_size=40))
def test_few_values_have_the_bounds_that_many_have(values: list[int | None]) -> None:
    few = pa.table({"offset": pa.array(values, pa.int64()), "timestamp": times(*values).column(0)})
    many = pa.concat_tables([few] * 40)
    names = ["offset", "timestamp"]
    found, of_many = file_statistics(few, names), file_statistics(many, names)
    assert (found.min_values, found.max_values) == (of_many.min_values, of_many.max_values)


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(2 * FIRST_US, 2 * LAST_US)), max_size=20), min_size=1))
def test_statistics_that_grow_are_those_of_all_rows(parts: list[list[int | None]]) -> None:
    growing = GrowingStatistics(["timestamp", "offset"], held_rows=30)
    tables = [times(*part).append_column("offset", pa.array(part, pa.int64())) for part in parts]
    for table in tables:
        growing.add(table)
    assert growing.of_all() == file_statistics(pa.concat_tables(tables), ["timestamp", "offset"])
