from __future__ import annotations

import threading

import pytest

from kraftlake.protocol.node_error import NodeError, NoLeaderError
from kraftlake.replay.live.retry_policy import RetryPolicy
from kraftlake.runtime.clock import ManualClock


class Waiting:
    """A patience whose pauses move its clock; its messages, and how long it waited."""

    def __init__(self, limit: float | None = None) -> None:
        self.clock = ManualClock()
        self.pauses: list[float] = []
        self.messages: list[str] = []
        self.patience = RetryPolicy(
            wait=self._wait, report=self.messages.append, limit=limit, clock=self.clock, chance=lambda: 0.5
        )

    def _wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds * 1000)

    def call(self, *outcomes: Exception | str) -> str:
        waiting = list(outcomes)

        def ask() -> str:
            outcome = waiting.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return self.patience.call(ask)


def test_the_first_failure_is_raised_since_the_address_may_be_wrong() -> None:
    waiting = Waiting()
    with pytest.raises(NodeError, match="refused"):
        waiting.call(NodeError("refused."), "never asked")
    assert not waiting.pauses


def test_a_quorum_without_a_leader_and_one_that_answered_before_are_waited_for_ever_longer() -> None:
    waiting = Waiting()
    assert waiting.call(*[NoLeaderError("no leader.")] * 12, "here") == "here"
    assert waiting.pauses[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert waiting.pauses[-1] == pytest.approx(10.0)
    assert waiting.messages == [
        "the quorum can't be asked, and is waited for: no leader.", "the quorum answers again.",
    ]  # fmt: skip
    assert waiting.call(NodeError("gone."), "back") == "back"
    assert waiting.pauses[12:] == pytest.approx([0.1]), "the pauses begin anew"


def test_patience_ends_at_its_limit_with_the_last_failure() -> None:
    waiting = Waiting(limit=1.0)
    with pytest.raises(NoLeaderError, match="still none"):
        waiting.call(*[NoLeaderError("none.")] * 4, NoLeaderError("still none."), "never asked")
    assert sum(waiting.pauses) == pytest.approx(1.5)


def test_an_interrupted_pause_ends_the_waiting_with_the_failure() -> None:
    stop = threading.Event()
    stop.set()
    messages: list[str] = []

    def ask() -> None:
        raise NoLeaderError("none.")

    with pytest.raises(NoLeaderError, match="none"):
        RetryPolicy(wait=stop.wait, report=messages.append).call(ask)
    assert messages == ["the quorum can't be asked, and is waited for: none."]


def test_what_is_called_after_each_answer_may_end_the_asking() -> None:
    answers: list[int] = []

    def answered() -> None:
        answers.append(1)
        if len(answers) == 2:
            raise InterruptedError

    patience = RetryPolicy(wait=lambda _: None, answered=answered, reached=True)
    assert patience.call(lambda: "here") == "here"
    with pytest.raises(InterruptedError):
        patience.call(lambda: "again")
