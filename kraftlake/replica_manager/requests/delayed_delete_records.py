"""A DeleteRecords request that waits for the followers. Source: kafka.server.DelayedDeleteRecords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode, error_of
from kraftlake.replica_manager.partition.leader import low_watermark
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.purgatory import DelayedOperation

INVALID_LOW_WATERMARK: Final = -1


@attrs.frozen(kw_only=True)
class DeleteRecordsAnswer:
    """What became of it: `low_watermark` is the lowest log start offset of all live replicas, −1 with an error."""

    low_watermark: int = INVALID_LOW_WATERMARK
    error: ErrorCode = ErrorCode.NONE


class DelayedDeleteRecords(DelayedOperation):
    """Waits until the low watermarks are at the `wanted` offsets, or this broker leads no longer."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        answers: Mapping[TopicPartition, DeleteRecordsAnswer],
        wanted: Mapping[TopicPartition, int],
        on_answer: Callable[[Mapping[TopicPartition, DeleteRecordsAnswer]], None],
    ) -> None:
        super().__init__()
        self._replicas = replica_manager
        self._answers = dict(answers)
        self._pending = dict(wanted)
        self._on_answer = on_answer

    def can_complete(self) -> bool:
        """Look at the partitions that are still waited for."""
        for name, wanted in list(self._pending.items()):
            try:
                partition = self._replicas.partition_or_raise(name)
                with partition.lock:
                    low = low_watermark(partition)
            except Exception as fault:
                self._answers[name] = DeleteRecordsAnswer(error=error_of(fault))
                del self._pending[name]
                continue
            self._answers[name] = DeleteRecordsAnswer(low_watermark=low)
            if low >= wanted:
                del self._pending[name]
        return not self._pending

    def on_complete(self) -> None:
        """Answer."""
        for name in self._pending:
            self._answers[name] = attrs.evolve(self._answers[name], error=ErrorCode.REQUEST_TIMED_OUT)
        self._on_answer(self._answers)
