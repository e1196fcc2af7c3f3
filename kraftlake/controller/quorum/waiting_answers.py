"""Answers that wait until an offset is durable. Source: org.apache.kafka.deferred.DeferredEventQueue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs


@attrs.frozen
class Answer:
    """`give` sends the answer; `fail` sends NOT_CONTROLLER.

    An answer with `records` is valid when they are durable, under any leader; an answer without records is valid only
    if this controller was the leader after the request had come, at `asked_ns`.
    """

    give: Callable[[], None]
    fail: Callable[[], None]
    records: bool
    asked_ns: int


class WaitingAnswers:
    """Answers with the offset that must be durable first, in the order of offsets."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Answer]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, answer: Answer) -> None:
        """Add an answer that waits for `offset`."""
        assert not self._waiting or self._waiting[-1][0] <= offset, "answers come in the order of the log"
        self._waiting.append((offset, answer))

    def take_up_to(self, offset: int) -> list[Answer]:
        """Remove and return the answers that wait for `offset` or an earlier one, in order."""
        due = []
        while self._waiting and self._waiting[0][0] <= offset:
            due.append(self._waiting.popleft()[1])
        return due

    def take_all(self) -> list[Answer]:
        """Remove and return all answers, in order."""
        due = [answer for _, answer in self._waiting]
        self._waiting.clear()
        return due
