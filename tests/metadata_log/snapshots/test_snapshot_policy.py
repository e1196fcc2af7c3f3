from __future__ import annotations

import pytest

from kraftlake.metadata_log.snapshots.snapshot_policy import SinceSnapshot, SnapshotPolicy
from kraftlake.runtime.errors import UsageError

HOUR = 3_600_000


def test_the_bounds_are_kafkas_unless_others_are_given() -> None:
    policy = SnapshotPolicy()
    since = SinceSnapshot(taken_at_ms=0).after(size_in_bytes=20 * 1024 * 1024 - 1, records=10**6)
    assert since.why_due(policy, HOUR - 1) is None
    assert "20971520 bytes" in (since.after(size_in_bytes=1, records=1).why_due(policy, 0) or "")
    assert "3600000 ms" in (since.why_due(policy, HOUR) or "")


def test_records_count_where_they_are_bounded() -> None:
    policy = SnapshotPolicy(max_bytes=None, max_records=3, max_interval_ms=None)
    since = SinceSnapshot(taken_at_ms=0).after(size_in_bytes=10**9, records=2)
    assert since.why_due(policy, 10**12) is None
    assert "3 records" in (since.after(size_in_bytes=0, records=1).why_due(policy, 0) or "")


def test_a_log_that_stands_still_needs_no_snapshot() -> None:
    assert SinceSnapshot(taken_at_ms=0).why_due(SnapshotPolicy(), 100 * HOUR) is None


@pytest.mark.parametrize("bound", ["max_bytes", "max_records", "max_interval_ms"])
def test_a_bound_of_nothing_is_refused(bound: str) -> None:
    with pytest.raises(UsageError, match="above 0"):
        SnapshotPolicy(**{bound: 0})
