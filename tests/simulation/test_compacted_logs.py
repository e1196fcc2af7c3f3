"""What the simulation takes for damage of a compacted log."""

from __future__ import annotations

import pytest

from kraftlake.replica_manager.logs.log_batch import log_batches
from simulator.compacted_logs import DELETE_RETENTION_MS, CompactedPartition, Held, Records, records_of
from simulator.data_batches import keyed

OTHER = Held(b"a", 0, is_tombstone=False, horizon=None)
NOW = 1_000


def committed() -> tuple[CompactedPartition, Records]:
    """A partition with two values of `a` at 0 and 3, one of `b` at 1, a tombstone of `c` at 2; and these records."""
    (batch,) = log_batches(keyed((b"a", b"1"), (b"b", b"1"), (b"c", None), (b"a", b"2")))
    partition = CompactedPartition()
    partition.commit(batch)
    return partition, records_of([batch])


def without(records: Records, *offsets: int) -> Records:
    return {offset: held for offset, held in records.items() if offset not in offsets}


def with_horizon(records: Records, offset: int, horizon: int) -> Records:
    held = records[offset]
    return {**records, offset: Held(held.key, held.checksum, is_tombstone=held.is_tombstone, horizon=horizon)}


def test_a_replica_holds_all_that_was_committed_where_nothing_was_cleaned() -> None:
    partition, records = committed()
    assert partition.problem(records, 0, 4) == ""
    assert "lacks b'a' at 0" in partition.problem(without(records, 0), 0, 4)
    assert "another record at 0" in partition.problem({**records, 0: OTHER}, 0, 4)
    assert "another record at 4" in partition.problem({**records, 4: OTHER}, 0, 5)


def test_only_what_is_superseded_in_the_cleaned_part_may_be_gone() -> None:
    partition, records = committed()
    kept = with_horizon(without(records, 0), 2, NOW + DELETE_RETENTION_MS)
    assert partition.cleaned(records, kept, 4, NOW) == ""
    assert partition.problem(without(records, 0), 0, 4) == ""
    assert "lacks b'b' at 1" in partition.problem(without(records, 1), 0, 4)
    assert "lacks b'a' at 3" in partition.problem(without(records, 0, 3), 0, 4)
    assert "lacks b'c' at 2" in partition.problem(without(records, 2), 0, 4)


@pytest.mark.parametrize(
    ("gone", "end", "problem"), [(1, 4, "removes b'b' at 1"), (0, 3, "removes b'a' at 0"), (2, 4, "removes b'c' at 2")]
)
def test_a_cleaner_removes_nothing_else(gone: int, end: int, problem: str) -> None:
    partition, records = committed()
    assert problem in partition.cleaned(records, without(records, gone), end, NOW)


def test_a_cleaner_neither_changes_nor_adds_a_record() -> None:
    partition, records = committed()
    later = with_horizon(records, 2, NOW + DELETE_RETENTION_MS)
    assert "changes the record at 1" in partition.cleaned(records, {**later, 1: OTHER}, 4, NOW)
    assert "adds records at [7]" in partition.cleaned(records, {**later, 7: OTHER}, 4, NOW)


def test_a_tombstone_goes_at_its_time_for_all_replicas() -> None:
    partition, records = committed()
    marked = with_horizon(records, 2, NOW + DELETE_RETENTION_MS)
    assert partition.cleaned(records, marked, 4, NOW) == ""
    early = NOW + DELETE_RETENTION_MS - 1
    assert "removes b'c' at 2" in partition.cleaned(marked, without(records, 2), 4, early)
    assert "lets the tombstone at 2 go" in partition.cleaned(records, with_horizon(records, 2, early), 4, NOW)
    assert partition.cleaned(marked, without(marked, 2), 4, NOW + DELETE_RETENTION_MS) == ""
    assert partition.problem(without(records, 0, 2), 0, 4) == ""
