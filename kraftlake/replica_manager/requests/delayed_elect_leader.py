"""An election that waits for its result to arrive here. Source: kafka.server.DelayedElectLeader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.requests.purgatory import DelayedOperation

ElectionAnswers: TypeAlias = Mapping[TopicPartition, ErrorCode]


class DelayedElectLeader(DelayedOperation):
    """Waits until this broker's metadata has the leaders that the controller told, so that clients find them."""

    def __init__(
        self,
        metadata: MetadataView,
        leaders: Mapping[TopicPartition, int],
        errors: ElectionAnswers,
        on_answer: Callable[[ElectionAnswers], None],
    ) -> None:
        super().__init__()
        self._metadata = metadata
        self._answers = dict(errors) | dict.fromkeys(leaders, ErrorCode.NONE)
        self._waiting = dict(leaders)
        self._on_answer = on_answer

    def can_complete(self) -> bool:
        """Look which leaders are known by now."""
        for name, leader in list(self._waiting.items()):
            if self._metadata.leader_of(name) == leader:
                del self._waiting[name]
        return not self._waiting

    def on_complete(self) -> None:
        """Answer."""
        for name in self._waiting:
            self._answers[name] = ErrorCode.REQUEST_TIMED_OUT
        self._on_answer(self._answers)
