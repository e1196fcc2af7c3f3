"""A delayed request that is answered once each of its partitions has its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from kraftlake.delta import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.requests.purgatory import DelayedOperation

Wanted = TypeVar("Wanted")
Answer = TypeVar("Answer")


class DelayedAnswers(DelayedOperation, Generic[Wanted, Answer]):
    """Waits until nothing is `pending`; a partition still pending at the timeout answers REQUEST_TIMED_OUT.

    `answers` has an answer for every partition from the start: the final one, or the one that `is_done` completes.
    """

    def __init__(
        self,
        answers: Mapping[TopicPartition, Answer],
        pending: Mapping[TopicPartition, Wanted],
        on_answer: Callable[[Mapping[TopicPartition, Answer]], None],
    ) -> None:
        super().__init__()
        self.answers = dict(answers)
        self._pending = dict(pending)
        self._on_answer = on_answer

    def is_done(self, name: TopicPartition, wanted: Wanted) -> bool:
        """Whether a partition has its final answer; the method sets the answer where it changes."""
        raise NotImplementedError

    def with_error(self, answer: Answer, error: ErrorCode) -> Answer:
        """An answer with an error code added."""
        raise NotImplementedError

    def can_complete(self) -> bool:
        """Check the pending partitions."""
        self._pending = {name: wanted for name, wanted in self._pending.items() if not self.is_done(name, wanted)}
        return not self._pending

    def on_complete(self) -> None:
        """Call back with the answers."""
        for name in self._pending:
            self.answers[name] = self.with_error(self.answers[name], ErrorCode.REQUEST_TIMED_OUT)
        self._on_answer(self.answers)
