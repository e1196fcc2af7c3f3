"""The leader of the quorum at an offset."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.replay.loader.quorum_state import leader_at
from tests.replay.made_logs import TIME, MadeLog, no_op


def log_of_terms(terms: list[int]) -> tuple[list[RecordBatch], list[int]]:
    """A log with a number of no-op batches after each LeaderChange, and the leader at each offset."""
    batches: list[RecordBatch] = []
    leaders: list[int] = []
    for number, length in enumerate(terms):
        epoch, leader = 2 * number + 1, 3000 + number % 3
        change = LeaderChangeMessage(version=0, leader_id=leader)
        batches.append(RecordBatch.control_of(len(leaders), epoch, TIME, [change]))
        batches += [no_op(len(leaders) + 1 + more, epoch=epoch) for more in range(length)]
        leaders += [leader] * (length + 1)
    return batches, leaders


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8))
def test_it_is_that_of_the_newest_leader_change_before_it(terms: list[int]) -> None:
    batches, leaders = log_of_terms(terms)
    log = MadeLog(records=tuple(batches))
    assert [leader_at(log, offset) for offset in range(len(leaders))] == leaders
    assert leader_at(log, len(leaders) + 5) == leaders[-1]


def test_it_is_unknown_where_the_log_lacks_the_change_or_everything() -> None:
    batches, _ = log_of_terms([3, 3])
    cut = MadeLog(records=tuple(batches[2:]), start_offset=2)
    assert [leader_at(cut, offset) for offset in (2, 3, 4)] == [None, None, 3001]
    assert leader_at(MadeLog(records=()), -1) is None
