"""A DeleteRecords request that waits for the followers. Source: kafka.server.DelayedDeleteRecords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.errors import error_of
from kraftlake.replica_manager.partition.leader import low_watermark
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.delayed_answers import DelayedAnswers

INVALID_LOW_WATERMARK: Final = -1


@attrs.frozen(kw_only=True)
class DeleteRecordsAnswer:
    """The result for one partition: `low_watermark` is the lowest log start offset of all live replicas."""

    low_watermark: int = INVALID_LOW_WATERMARK
    error: ErrorCode = ErrorCode.NONE


class DelayedDeleteRecords(DelayedAnswers[int, DeleteRecordsAnswer]):
    """Waits until the low watermarks reach the `wanted` offsets, or this broker no longer leads the partition."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        answers: Mapping[TopicPartition, DeleteRecordsAnswer],
        wanted: Mapping[TopicPartition, int],
        on_answer: Callable[[Mapping[TopicPartition, DeleteRecordsAnswer]], None],
    ) -> None:
        super().__init__(answers, wanted, on_answer)
        self._replicas = replica_manager

    def is_done(self, name: TopicPartition, wanted: int) -> bool:
        """Whether the low watermark has reached `wanted`, or the partition has failed."""
        try:
            partition = self._replicas.partition_or_raise(name)
            with partition.lock:
                low = low_watermark(partition)
        except Exception as fault:
            self.answers[name] = DeleteRecordsAnswer(error=error_of(fault))
            return True
        self.answers[name] = DeleteRecordsAnswer(low_watermark=low)
        return low >= wanted
