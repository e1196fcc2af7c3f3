"""Answers that wait until the log has gone on. Source: org.apache.kafka.deferred.DeferredEventQueue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs


@attrs.frozen
class Answer:
    """`give` sends the answer, `fail` sends that this controller is no longer active.

    An answer with `records` is true once they are in the log, under any leader; others are true only while this
    controller leads.
    """

    give: Callable[[], None]
    fail: Callable[[], None]
    records: bool


class WaitingAnswers:
    """Answers by the offset that must be durable before; offsets never go down."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Answer]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, answer: Answer) -> None:
        """Wait for `offset`."""
        assert not self._waiting or self._waiting[-1][0] <= offset, "answers come in the order of the log"
        self._waiting.append((offset, answer))

    def take_up_to(self, offset: int) -> list[Answer]:
        """Those whose time has come, in order."""
        due = []
        while self._waiting and self._waiting[0][0] <= offset:
            due.append(self._waiting.popleft()[1])
        return due

    def take_all(self) -> list[Answer]:
        """All of them."""
        due = [answer for _, answer in self._waiting]
        self._waiting.clear()
        return due
