"""Delayed requests that are answered once each of their partitions has its answer: Produce, DeleteRecords."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.errors import RecordError, error_of
from kraftlake.replica_manager.partition.leader import check_enough_replicas_reach_offset, low_watermark
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.purgatory import DelayedOperation

INVALID_LOW_WATERMARK: Final = -1

Answer = TypeVar("Answer")


class DelayedAnswers(DelayedOperation, Generic[Answer]):
    """Waits until the partitions have reached the `wanted` offsets; one that is late answers REQUEST_TIMED_OUT.

    `answers` has an answer for every partition from the start: the final one, or the one that `is_done` completes.
    It has its error code in `error`.
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        answers: Mapping[TopicPartition, Answer],
        wanted: Mapping[TopicPartition, int],
        on_answer: Callable[[Mapping[TopicPartition, Answer]], None],
    ) -> None:
        super().__init__()
        self._replicas = replica_manager
        self.answers = dict(answers)
        self._pending = dict(wanted)
        self._on_answer = on_answer

    def is_done(self, name: TopicPartition, wanted: int) -> bool:
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


class DelayedProduce(DelayedAnswers[ProduceAnswer]):
    """Waits until each partition has committed the records below its `wanted` end, or can no longer commit them.

    The request has acks=all. A partition that times out may still commit the records later. Source:
    org.apache.kafka.server.purgatory.DelayedProduce.
    """

    def is_done(self, name: TopicPartition, wanted: int) -> bool:
        """Whether the records below offset `wanted` are committed, or can't be committed."""
        try:
            done, error = check_enough_replicas_reach_offset(self._replicas.partition_or_raise(name), wanted)
        except Exception as fault:
            done, error = True, error_of(fault)
        if error is not ErrorCode.NONE:
            self.answers[name] = attrs.evolve(self.answers[name], error=error)
        return done or error is not ErrorCode.NONE


@attrs.frozen(kw_only=True)
class DeleteRecordsAnswer:
    """The result for one partition: `low_watermark` is the lowest log start offset of all live replicas."""

    low_watermark: int = INVALID_LOW_WATERMARK
    error: ErrorCode = ErrorCode.NONE


class DelayedDeleteRecords(DelayedAnswers[DeleteRecordsAnswer]):
    """Waits until the low watermarks reach the `wanted` offsets, or this broker no longer leads the partition.

    Source: kafka.server.DelayedDeleteRecords.
    """

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
