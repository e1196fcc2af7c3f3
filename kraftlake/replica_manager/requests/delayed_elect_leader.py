"""An election that waits until this broker's metadata has the result. Source: kafka.server.DelayedElectLeader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kraftlake.delta import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.requests.delayed_answers import DelayedAnswers

ElectionAnswers: TypeAlias = Mapping[TopicPartition, ErrorCode]


class DelayedElectLeader(DelayedAnswers[int, ErrorCode]):
    """Waits until this broker's metadata has the elected leaders, so that clients find them."""

    def __init__(
        self,
        metadata: MetadataView,
        leaders: Mapping[TopicPartition, int],
        errors: ElectionAnswers,
        on_answer: Callable[[ElectionAnswers], None],
    ) -> None:
        super().__init__(dict(errors) | dict.fromkeys(leaders, ErrorCode.NONE), leaders, on_answer)
        self._metadata = metadata

    def is_done(self, name: TopicPartition, wanted: int) -> bool:
        """Whether the metadata names broker `wanted` as the leader."""
        return self._metadata.leader_of(name) == wanted

    def with_error(self, answer: ErrorCode, error: ErrorCode) -> ErrorCode:  # noqa: ARG002
        """The error code."""
        return error
