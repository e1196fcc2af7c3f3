"""A produce request with acks=all that waits for the ISR. Source: org.apache.kafka.server.purgatory.DelayedProduce."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode, error_of
from kraftlake.replica_manager.partition.leader import check_enough_replicas_reach_offset
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.purgatory import DelayedOperation


@attrs.frozen(kw_only=True)
class ProduceAnswer:
    """What became of a partition's batches: the offset that the first record got, −1 where nothing was appended."""

    base_offset: int = -1
    log_start_offset: int = -1
    error: ErrorCode = ErrorCode.NONE


class DelayedProduce(DelayedOperation):
    """Waits until what was appended up to `ends` is committed, or can't be any more, in each partition.

    A partition that is still waited for when the time is over answers REQUEST_TIMED_OUT: it may be committed later.
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        answers: Mapping[TopicPartition, ProduceAnswer],
        ends: Mapping[TopicPartition, int],
        on_answer: Callable[[Mapping[TopicPartition, ProduceAnswer]], None],
    ) -> None:
        super().__init__()
        self._replicas = replica_manager
        self._answers = dict(answers)
        self._pending = dict(ends)
        self._on_answer = on_answer

    def can_complete(self) -> bool:
        """Look at the partitions that are still waited for."""
        for name, end in list(self._pending.items()):
            try:
                partition = self._replicas.partition_or_raise(name)
                done, error = check_enough_replicas_reach_offset(partition, end)
            except Exception as fault:
                done, error = True, error_of(fault)
            if done or error is not ErrorCode.NONE:
                del self._pending[name]
                if error is not ErrorCode.NONE:
                    self._answers[name] = attrs.evolve(self._answers[name], error=error)
        return not self._pending

    def on_complete(self) -> None:
        """Answer."""
        for name in self._pending:
            self._answers[name] = attrs.evolve(self._answers[name], error=ErrorCode.REQUEST_TIMED_OUT)
        self._on_answer(self._answers)
