"""A produce request with acks=all that waits for the ISR. Source: org.apache.kafka.server.purgatory.DelayedProduce."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.errors import RecordError, error_of
from kraftlake.replica_manager.partition.leader import check_enough_replicas_reach_offset
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.delayed_answers import DelayedAnswers


@attrs.frozen(kw_only=True)
class ProduceAnswer:
    """The result for one partition: the offset of the first appended record, −1 if nothing was appended.

    `log_append_time` (epoch ms) is the leader's timestamp of the records, or that of a batch appended before; None if
    the leader keeps the producer's timestamps. `records` are the invalid ones.
    """

    base_offset: int = -1
    log_append_time: int | None = None
    log_start_offset: int = -1
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    records: tuple[RecordError, ...] = ()


class DelayedProduce(DelayedAnswers[int, ProduceAnswer]):
    """Waits until each partition has committed the records below its end in `ends`, or can no longer commit them.

    A partition that times out may still commit the records later.
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        answers: Mapping[TopicPartition, ProduceAnswer],
        ends: Mapping[TopicPartition, int],
        on_answer: Callable[[Mapping[TopicPartition, ProduceAnswer]], None],
    ) -> None:
        super().__init__(answers, ends, on_answer)
        self._replicas = replica_manager

    def is_done(self, name: TopicPartition, wanted: int) -> bool:
        """Whether the records below offset `wanted` are committed, or can't be committed."""
        try:
            done, error = check_enough_replicas_reach_offset(self._replicas.partition_or_raise(name), wanted)
        except Exception as fault:
            done, error = True, error_of(fault)
        if error is not ErrorCode.NONE:
            self.answers[name] = attrs.evolve(self.answers[name], error=error)
        return done or error is not ErrorCode.NONE
