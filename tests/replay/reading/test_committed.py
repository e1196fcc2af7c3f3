from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.replay.reading.committed import EpochEnds
from tests.at_least_one import at_least_one


@attrs.frozen
class At:
    leader_epoch: int
    high_watermark: int


def test_a_copy_without_the_leaders_epoch_proves_nothing() -> None:
    ends = EpochEnds()
    assert ends.committed_below(10, 0) == -1
    ends.see(4, 10)
    assert ends.committed_below(10, 5) == -1
    assert ends.committed_below(10, 4) == 10
    assert ends.committed_below(-1, 4) == -1


def test_an_answer_of_an_older_leader_still_holds() -> None:
    ends = EpochEnds()
    ends.see(4, 10)
    ends.see(6, 12)
    assert ends.committed_below(11, 5) == 11
    assert ends.committed_below(20, 5) == 12


@given(
    terms=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8),
    own=st.integers(0, 5),
    seen=st.integers(0, 40),
    asked=st.integers(0, 100),
)
def test_no_copy_of_any_history_of_leaders_takes_what_was_not_committed(
    terms: list[tuple[int, int, int]], own: int, seen: int, asked: int
) -> None:
    """Each leader writes batches of one offset, commits some, and loses the others to the next one.

    The copy is of a node that was in step up to a term, appended `own` of its own there, and was cut off; or of one
    that is in step with the last leader, as far as `seen`.
    """
    inherited: list[int] = []
    logs: list[list[int]] = []
    answers: list[At] = []
    for epoch, (wrote, commits, kept) in enumerate(terms):
        log = inherited + [epoch] * wrote
        high_watermark = len(inherited) + min(commits, wrote)
        answers.append(At(epoch, high_watermark))
        logs.append(log)
        inherited = log[: high_watermark + kept]  # the next leader has all that is committed, and maybe more
    truth = logs[-1]
    cut_off = asked % len(logs)
    copies = [truth[:seen], logs[cut_off] + [cut_off] * own]
    for copy in copies:
        ends = EpochEnds()
        for offset, epoch in enumerate(copy):
            ends.see(epoch, offset + 1)
        for answer in at_least_one(answers):
            bound = ends.committed_below(answer.high_watermark, answer.leader_epoch)
            assert copy[: max(bound, 0)] == truth[: max(bound, 0)]
