from __future__ import annotations

import pytest

from kraftlake.protocol.describe import OtherClusterError
from kraftlake.protocol.node_error import NodeError, NoLeaderError
from kraftlake.protocol.quorum_client import QuorumPosition
from kraftlake.protocol.quorum_watch import QuorumWatch
from kraftlake.runtime.clock import ManualClock


class Quorum:
    """Answers, unless it has a fault; counts how often it was asked."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.high_watermark = 1
        self.asked = 0

    def describe(self) -> QuorumPosition:
        self.asked += 1
        if self.fault is not None:
            raise self.fault
        return QuorumPosition(leader_id=1, leader_epoch=1, high_watermark=self.high_watermark)


def test_a_fault_of_the_first_request_is_raised_since_the_address_may_be_wrong() -> None:
    quorum, reported = Quorum(), list[str]()
    quorum.fault = NodeError("nobody is there.")
    watch = QuorumWatch(quorum.describe, reported.append, clock=ManualClock())
    with pytest.raises(NodeError, match="nobody is there"):
        watch.position()
    assert not reported


def test_an_unreachable_quorum_is_reported_once_and_retried_with_longer_pauses() -> None:
    quorum, reported, clock = Quorum(), list[str](), ManualClock()
    watch = QuorumWatch(quorum.describe, reported.append, clock=clock, jitter=lambda: 0.5)
    assert watch.position().high_watermark == 1
    quorum.high_watermark, quorum.fault = 5, NodeError("it went away.")
    asked_at = []
    for tenth in range(2000):
        before = quorum.asked
        assert watch.position().high_watermark == 1, "nothing beyond what is known to be committed"
        if quorum.asked > before:
            asked_at.append(tenth / 10)
        clock.advance(100)
    assert asked_at[:6] == [0.0, 0.5, 1.5, 3.5, 7.5, 15.5]
    assert asked_at[-1] - asked_at[-2] == 30
    assert reported == [
        "the quorum can't be asked, so nothing more is taken for committed until it can be: it went away."
    ]
    quorum.fault = None
    clock.advance(30_000)
    assert watch.position().high_watermark == 5
    assert reported[1:] == ["the quorum answers again."]
    quorum.fault = NodeError("again.")
    watch.position()
    assert len(reported) == 3


def test_the_watch_waits_for_a_cluster_that_elects_a_leader_at_the_start() -> None:
    quorum, reported, clock = Quorum(), list[str](), ManualClock()
    quorum.fault = NoLeaderError("nobody leads.")
    watch = QuorumWatch(quorum.describe, reported.append, clock=clock)
    for fault in (quorum.fault, quorum.fault, NodeError("all restart.")):
        quorum.fault = fault
        assert watch.position().high_watermark == -1
        clock.advance(30_000)
    assert quorum.asked == 3
    assert reported == [
        "the quorum can't be asked, so nothing more is taken for committed until it can be: nobody leads."
    ]
    quorum.fault = None
    assert watch.position().high_watermark == 1
    assert reported[1:] == ["the quorum answers again."]


def test_another_cluster_at_the_address_is_an_error_at_any_time() -> None:
    quorum = Quorum()
    watch = QuorumWatch(quorum.describe, lambda _: None, clock=ManualClock())
    watch.position()
    quorum.fault = OtherClusterError("another cluster")
    with pytest.raises(OtherClusterError):
        watch.position()
