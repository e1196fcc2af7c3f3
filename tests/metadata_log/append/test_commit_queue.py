from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.metadata_log.append.commit_queue import CommitQueue, GroupLimits, PendingAppend
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.errors import QueueFullError, UsageError

NOOP = ApiMessageAndVersion(NoOpRecord(), 0)


def queue(**limits: float) -> CommitQueue:
    return CommitQueue(GroupLimits(**limits), end_offset=100, epoch=3)  # type: ignore[arg-type]


def offer(waiting: CommitQueue, records: int = 1, now: float = 0.0) -> PendingAppend:
    return waiting.offer([NOOP] * records, 7, now)


def test_offsets_are_given_in_the_order_of_the_offers() -> None:
    waiting = queue()
    first, second = offer(waiting, 3), offer(waiting, 2)
    assert (first.base_offset, first.last_offset) == (100, 102)
    assert (second.base_offset, second.last_offset) == (103, 104)
    assert (second.batch.epoch, second.batch.timestamp) == (3, 7)


def test_without_a_delay_what_waits_is_due_at_once_and_goes_together() -> None:
    waiting = queue()
    assert waiting.due_at() is None
    offered = [offer(waiting, now=5.0), offer(waiting, now=6.0)]
    assert waiting.due_at() == 5.0
    assert waiting.take(5.0) == offered


def test_a_delay_is_counted_from_the_first_that_waits() -> None:
    waiting = queue(max_delay=0.5)
    offer(waiting, now=1.0)
    offer(waiting, now=1.4)
    assert waiting.take(1.49) == []
    assert len(waiting.take(1.5)) == 2


def test_a_full_group_does_not_wait_for_its_delay() -> None:
    waiting = queue(max_delay=60, max_group_records=3)
    offer(waiting, 2, now=1.0)
    assert waiting.due_at() == 61.0
    offer(waiting, 2, now=1.0)
    assert [pending.base_offset for pending in waiting.take(1.0)] == [100]
    waiting.settle()
    assert waiting.take(2.0) == []


def test_a_group_is_bounded_by_bytes() -> None:
    size = offer(queue()).size
    waiting = queue(max_group_bytes=2 * size)
    for _ in range(5):
        offer(waiting)
    sizes = []
    while group := waiting.take(9.0):
        sizes.append(len(group))
        waiting.settle()
    assert sizes == [2, 2, 1]


def test_a_batch_larger_than_a_group_goes_alone() -> None:
    waiting = queue(max_group_records=3)
    offer(waiting, 1)
    offer(waiting, 10)
    offer(waiting, 1)
    sizes = []
    while group := waiting.take(0.0):
        sizes.append([pending.batch.record_count for pending in group])
        waiting.settle()
    assert sizes == [[1], [10], [1]]


def test_one_group_is_committed_at_a_time() -> None:
    waiting = queue()
    offer(waiting)
    assert waiting.take(0.0)
    offer(waiting)
    assert waiting.due_at() is None
    assert waiting.take(99.0) == []
    waiting.settle()
    assert len(waiting.take(99.0)) == 1


def test_more_than_may_wait_is_refused_and_takes_no_offset() -> None:
    waiting = queue(max_waiting_batches=2)
    offer(waiting)
    waiting.take(0.0)
    offer(waiting)
    with pytest.raises(QueueFullError, match=r"2 batches with .* wait to be appended after offset 101"):
        offer(waiting)
    waiting.settle()
    assert offer(waiting).base_offset == 102


def test_bytes_that_wait_are_bounded_but_for_one_batch_alone() -> None:
    waiting = queue(max_waiting_bytes=1)
    offer(waiting, 50)
    with pytest.raises(QueueFullError):
        offer(waiting)
    waiting.take(0.0)
    with pytest.raises(QueueFullError):
        offer(waiting)
    waiting.settle()
    offer(waiting)


def test_exactly_the_bytes_of_the_limits_make_a_full_group_and_may_wait() -> None:
    size = offer(queue()).size
    waiting = queue(max_delay=60, max_group_bytes=2 * size, max_waiting_bytes=3 * size)
    offer(waiting)
    assert waiting.due_at() == 60.0
    offer(waiting)
    assert waiting.due_at() == 0.0, "a full group does not wait"
    offer(waiting)
    with pytest.raises(QueueFullError):
        offer(waiting)
    assert [pending.base_offset for pending in waiting.take(0.0)] == [100, 101]


def test_what_is_dropped_is_everything_in_order() -> None:
    waiting = queue(max_group_records=1)
    offered = [offer(waiting) for _ in range(3)]
    waiting.take(0.0)
    assert waiting.drop() == offered
    assert waiting.is_empty


@pytest.mark.parametrize("name", ["max_delay", "max_group_records", "max_waiting_bytes"])
def test_a_limit_that_lets_nothing_through_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} .* can't be -1"):
        GroupLimits(**{name: -1})


@given(data=st.data())
def test_every_batch_is_taken_once_in_order_within_the_bounds(data: st.DataObject) -> None:
    limits = GroupLimits(
        max_delay=data.draw(st.sampled_from([0.0, 1.0])),
        max_group_records=data.draw(st.integers(1, 20)),
        max_waiting_batches=data.draw(st.integers(1, 10)),
    )
    waiting = CommitQueue(limits, end_offset=0, epoch=0)
    now, offered, taken = 0.0, [], []
    for step in data.draw(st.lists(st.sampled_from(["offer", "take", "settle", "tick"]), max_size=60)):
        if step == "offer":
            try:
                offered.append(waiting.offer([NOOP] * data.draw(st.integers(1, 15)), 0, now))
            except QueueFullError:
                assert len(offered) - sum(pending.done.done() for pending in offered) >= limits.max_waiting_batches
        elif step == "take":
            group = waiting.take(now)
            taken += group
            if len(group) > 1:
                assert sum(pending.batch.record_count for pending in group) <= limits.max_group_records
            assert group or waiting.due_at() is None or waiting.due_at() > now
        elif step == "settle":
            for pending in waiting.settle():
                pending.done.set_result(pending.last_offset)
        else:
            now += 0.4
        assert len(offered) - sum(pending.done.done() for pending in offered) <= limits.max_waiting_batches
    assert taken == offered[: len(taken)]
    ends = [0, *(pending.last_offset + 1 for pending in offered)]
    assert [pending.base_offset for pending in offered] == ends[:-1]
