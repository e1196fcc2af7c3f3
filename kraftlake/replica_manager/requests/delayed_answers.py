"""A delayed request that is answered once each of its partitions has its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.requests.purgatory import DelayedOperation

Wanted = TypeVar("Wanted")
Answer = TypeVar("Answer")


class DelayedAnswers(DelayedOperation, Generic[Wanted, Answer]):
    """Waits until nothing is `pending`; a partition still pending at the timeout answers REQUEST_TIMED_OUT.

    `answers` has an answer for every partition from the start: the final one, or the one that `is_done` completes.
    It has its error code in `error`.
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
        """Whether a partition has its final answer; the method updates the answer if it changes."""
        raise NotImplementedError

    def can_complete(self) -> bool:
        """Check the pending partitions."""
        self._pending = {name: wanted for name, wanted in self._pending.items() if not self.is_done(name, wanted)}
        return not self._pending

    def on_complete(self) -> None:
        """Call back with the answers."""
        for name in self._pending:
            answer: Any = self.answers[name]
            self.answers[name] = attrs.evolve(answer, error=ErrorCode.REQUEST_TIMED_OUT)
        self._on_answer(self.answers)
