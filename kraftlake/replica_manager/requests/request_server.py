"""Answers the requests of clients and followers, each for several partitions. Source: kafka.server.ReplicaManager.

Each request calls its `on_answer` exactly once, at once or later, without a lock. An error of a partition is an error
code in the answer, never an exception. If `on_answer` raises, the request raises too; for a delayed request, whose
caller is gone, `on_fault` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.topics.topic_names import INTERNAL_TOPICS
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import InvalidBatchError, UnknownTopicIdError, error_of
from kraftlake.replica_manager.fetch.leader_end_point import EpochEndOffset
from kraftlake.replica_manager.logs.log_values import AppendOrigin, FetchIsolation, LogAppendInfo, TimestampAndOffset
from kraftlake.replica_manager.partition.leader import (
    ALL_IN_SYNC,
    FetchParams,
    FetchPartition,
    append_records_to_leader,
    delete_records_on_leader,
    last_offset_for_leader_epoch,
    offset_for_timestamp,
)
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.delayed_answers import (
    DelayedDeleteRecords,
    DelayedProduce,
    DeleteRecordsAnswer,
    ProduceAnswer,
)
from kraftlake.replica_manager.requests.delayed_fetch import DelayedFetch, FetchAnswers
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.log_reads import read_from_log

VALID_ACKS: Final = (ALL_IN_SYNC, 0, 1)
_WITHOUT_LOG_START: Final = frozenset({
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
})  # fmt: skip
"""The errors of an append whose answer lacks the log start offset."""

Wanted = TypeVar("Wanted")
Answer = TypeVar("Answer")


@attrs.frozen(kw_only=True)
class ListedOffset:
    """The answer to ListOffsets: the offset found, None without one."""

    found: TimestampAndOffset | None = None
    error: ErrorCode = ErrorCode.NONE


class RequestServer:
    """Serves the requests that read or change the logs of a broker's replica manager."""

    def __init__(self, replica_manager: ReplicaManager, delayed: DelayedRequests) -> None:
        assert replica_manager.context.delayed_operations is delayed, (
            "the replica manager completes the requests that wait here"
        )
        self._replicas = replica_manager
        self._delayed = delayed

    def append_records(
        self,
        entries: Mapping[TopicPartition, bytes],
        *,
        required_acks: int,
        timeout_ms: float,
        on_answer: Callable[[Mapping[TopicPartition, ProduceAnswer]], None],
        on_fault: Callable[[], object] | None = None,
        topic_ids: Mapping[str, Uuid] | None = None,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        internal_topics_allowed: bool = False,
    ) -> None:
        """Append batches, and answer when the replicas required by `required_acks` have them.

        −1 waits for the ISR, at most `timeout_ms`, where at least one partition's append succeeded; 0 and 1 answer at
        once. `topic_ids` are the producer's topic ids by topic name, if it sends them: a partition with another topic
        id answers UNKNOWN_TOPIC_ID.
        """
        if required_acks not in VALID_ACKS:
            on_answer({name: ProduceAnswer(error=ErrorCode.INVALID_REQUIRED_ACKS) for name in entries})
            return
        appended: dict[TopicPartition, LogAppendInfo] = {}
        answers: dict[TopicPartition, ProduceAnswer] = {}
        for name, data in entries.items():
            try:
                if name.topic in INTERNAL_TOPICS and not internal_topics_allowed:
                    answers[name] = ProduceAnswer(error=ErrorCode.INVALID_TOPIC_EXCEPTION)
                    continue
                partition = self._replicas.partition_or_raise(name)
                meant = (topic_ids or {}).get(name.topic, partition.topic_id)
                if meant != partition.topic_id:
                    raise UnknownTopicIdError(f"{name} has topic id {partition.topic_id} here, not {meant}.")
                info = append_records_to_leader(partition, data, origin=origin, required_acks=required_acks)
            except Exception as error:
                answers[name] = self._not_appended(name, error)
            else:
                appended[name] = info
                answers[name] = ProduceAnswer(
                    base_offset=info.first_offset,
                    log_append_time=info.log_append_time,
                    log_start_offset=info.log_start_offset,
                )
        try:
            if required_acks == ALL_IN_SYNC and appended:
                ends = {name: info.last_offset + 1 for name, info in appended.items()}
                waiting = DelayedProduce(self._replicas, answers, ends, on_answer)
                waiting.on_fault = on_fault
                self._delayed.produce.try_complete_else_watch(waiting, tuple(entries), timeout_ms)
            else:
                on_answer(answers)
        finally:
            # The produce request waits before others are completed, because a completed request may complete it.
            # Others are completed even if `on_answer` has raised: the batches are appended.
            for name, info in appended.items():
                if info.leader_hw_incremented:
                    self._delayed.check_and_complete_all(name)
                else:
                    self._delayed.fetch.check_and_complete(name)

    def _not_appended(self, name: TopicPartition, error: Exception) -> ProduceAnswer:
        code = error_of(error)
        is_of_batch = isinstance(error, InvalidBatchError)
        log_start_offset = -1
        if code not in _WITHOUT_LOG_START and (partition := self._replicas.online_partition(name)) is not None:
            log_start_offset = -1 if partition.log is None else partition.log.log_start_offset
        return ProduceAnswer(
            error=code, log_start_offset=log_start_offset, message=str(error) if is_of_batch else None,
            records=error.records if isinstance(error, InvalidBatchError) else (),
        )  # fmt: skip

    def fetch_messages(
        self,
        params: FetchParams,
        wanted: Mapping[TopicPartition, FetchPartition],
        *,
        on_answer: Callable[[FetchAnswers], None],
        on_fault: Callable[[], object] | None = None,
        throttle: ReplicationQuota | None = None,
    ) -> None:
        """Read, and answer once `params.min_bytes` are available, or after `params.max_wait_ms`.

        Answers at once if the request has no partition, or a partition has an error, a diverging epoch or a preferred
        read replica.
        """
        answers = read_from_log(self._replicas, params, wanted, throttle=throttle)
        if (
            params.max_wait_ms <= 0
            or not wanted
            or sum(answer.size_in_bytes for answer in answers.values()) >= params.min_bytes
            or any(answer.is_decisive for answer in answers.values())
        ):
            on_answer(answers)
            return
        waiting = DelayedFetch(self._replicas, params, wanted, on_answer, throttle=throttle)
        waiting.on_fault = on_fault
        self._delayed.fetch.watch(waiting, tuple(wanted), params.max_wait_ms)

    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        timeout_ms: float,
        on_answer: Callable[[Mapping[TopicPartition, DeleteRecordsAnswer]], None],
        on_fault: Callable[[], object] | None = None,
    ) -> None:
        """Delete the records below offsets (−1: the high watermark); answer when all live replicas have done so."""
        answers: dict[TopicPartition, DeleteRecordsAnswer] = {}
        wanted: dict[TopicPartition, int] = {}
        for name, offset in offsets.items():
            try:
                if name.topic in INTERNAL_TOPICS:
                    answers[name] = DeleteRecordsAnswer(error=ErrorCode.INVALID_TOPIC_EXCEPTION)
                    continue
                result = delete_records_on_leader(self._replicas.partition_or_raise(name), offset)
            except Exception as error:
                answers[name] = DeleteRecordsAnswer(error=error_of(error))
                continue
            answers[name] = DeleteRecordsAnswer(low_watermark=result.low_watermark)
            if result.low_watermark < result.requested_offset:
                wanted[name] = result.requested_offset
        if not wanted:
            on_answer(answers)
            return
        waiting = DelayedDeleteRecords(self._replicas, answers, wanted, on_answer)
        waiting.on_fault = on_fault
        self._delayed.delete_records.try_complete_else_watch(waiting, tuple(wanted), timeout_ms)

    def offsets_for_leader_epoch(
        self, wanted: Mapping[TopicPartition, tuple[int | None, int]]
    ) -> dict[TopicPartition, EpochEndOffset]:
        """The ends of leader epochs; `wanted` has the client's current epoch, or None, and the epoch to look up."""

        def end_of(partition: Partition, epochs: tuple[int | None, int]) -> EpochEndOffset:
            return EpochEndOffset(end=last_offset_for_leader_epoch(partition, *epochs))

        return self._answer_each(wanted, end_of, lambda error: EpochEndOffset(error=error))

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        current_leader_epochs: Mapping[TopicPartition, int] | None = None,
        require_leader: bool = True,
    ) -> dict[TopicPartition, ListedOffset]:
        """The first record of each partition at or after a timestamp (epoch ms, or negative as in ListOffsets)."""
        epochs = current_leader_epochs or {}

        def listed(partition: Partition, timestamp: int) -> ListedOffset:
            epoch = epochs.get(partition.topic_partition)
            found = offset_for_timestamp(
                partition, timestamp, isolation=isolation, current_leader_epoch=epoch, require_leader=require_leader
            )
            return ListedOffset(found=found)

        return self._answer_each(wanted, listed, lambda error: ListedOffset(error=error))

    def _answer_each(
        self,
        wanted: Mapping[TopicPartition, Wanted],
        answer: Callable[[Partition, Wanted], Answer],
        failed: Callable[[ErrorCode], Answer],
    ) -> dict[TopicPartition, Answer]:
        answers: dict[TopicPartition, Answer] = {}
        for name, what in wanted.items():
            try:
                answers[name] = answer(self._replicas.partition_or_raise(name), what)
            except Exception as error:
                answers[name] = failed(error_of(error))
        return answers
