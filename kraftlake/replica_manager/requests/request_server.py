"""What a broker answers to clients and followers: the requests of several partitions that a client sends as one.

Source: kafka.server.ReplicaManager. Each request is answered by its callback exactly once, at once or later; callbacks
are called without a lock. A partition's fault is an error code in its answer, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ErrorCode, UnknownTopicIdError, error_of
from kraftlake.replica_manager.logs.partition_log import (
    AppendOrigin,
    FetchIsolation,
    LogAppendInfo,
    OffsetAndEpoch,
    TimestampAndOffset,
)
from kraftlake.replica_manager.partition.leader import (
    ALL_IN_SYNC,
    FetchParams,
    FetchPartition,
    append_records_to_leader,
    delete_records_on_leader,
    last_offset_for_leader_epoch,
    offset_for_timestamp,
)
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.replication_quota import ReplicaQuota
from kraftlake.replica_manager.requests.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsAnswer
from kraftlake.replica_manager.requests.delayed_elect_leader import DelayedElectLeader, ElectionAnswers
from kraftlake.replica_manager.requests.delayed_fetch import DelayedFetch, FetchAnswers
from kraftlake.replica_manager.requests.delayed_produce import DelayedProduce, ProduceAnswer
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.log_reads import read_from_log

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
VALID_ACKS: Final = (ALL_IN_SYNC, 0, 1)

ElectLeaders: TypeAlias = Callable[
    [frozenset[TopicPartition], Callable[[Mapping[TopicPartition, int], Mapping[TopicPartition, ErrorCode]], None]],
    None,
]
"""Asks the controller to elect leaders of partitions; it answers with the new leaders, and errors of the others."""


@attrs.frozen(kw_only=True)
class EpochEnd:
    """The answer to OffsetsForLeaderEpoch: the end of the epoch, None where it is not known."""

    end: OffsetAndEpoch | None = None
    error: ErrorCode = ErrorCode.NONE


@attrs.frozen(kw_only=True)
class ListedOffset:
    """The answer to ListOffsets: None where no record is as asked for."""

    found: TimestampAndOffset | None = None
    error: ErrorCode = ErrorCode.NONE


class RequestServer:
    """Serves the requests that a broker's replica manager answers for."""

    def __init__(self, replica_manager: ReplicaManager, delayed: DelayedRequests) -> None:
        assert replica_manager.delayed_operations is delayed, "who waits here is to be woken by that replica manager"
        self._replicas = replica_manager
        self._delayed = delayed

    def append_records(
        self,
        entries: Mapping[TopicPartition, bytes],
        *,
        required_acks: int,
        timeout_ms: float,
        on_answer: Callable[[Mapping[TopicPartition, ProduceAnswer]], None],
        topic_ids: Mapping[str, Uuid] | None = None,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        internal_topics_allowed: bool = False,
    ) -> None:
        """Append batches, and answer when as many replicas have them as `required_acks` asks for.

        −1 waits for the ISR, `timeout_ms` at most; 0 and 1 for nobody. Only −1 ever waits, and only where something
        was asked for and not all of it has failed. `topic_ids` are those of the topics that the producer means, by
        name, as far as it tells them: another topic of that name answers UNKNOWN_TOPIC_ID.
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
                answers[name] = ProduceAnswer(error=error_of(error))
            else:
                appended[name] = info
                answers[name] = ProduceAnswer(base_offset=info.first_offset, log_start_offset=info.log_start_offset)
        try:
            if required_acks == ALL_IN_SYNC and appended:
                ends = {name: info.last_offset + 1 for name, info in appended.items()}
                waiting = DelayedProduce(self._replicas, answers, ends, on_answer)
                self._delayed.produce.try_complete_else_watch(waiting, tuple(entries), timeout_ms)
            else:
                on_answer(answers)
        finally:
            # Only now: who is woken may answer somebody else, and the one who asked has waited first. In any case: what
            # was appended is there, whatever the callback of the one who asked has raised.
            for name, info in appended.items():
                if info.leader_hw_incremented:
                    self._delayed.check_and_complete_all(name)
                else:
                    self._delayed.complete_new_data(name)

    def fetch_messages(
        self,
        params: FetchParams,
        wanted: Mapping[TopicPartition, FetchPartition],
        *,
        on_answer: Callable[[FetchAnswers], None],
        throttle: ReplicaQuota | None = None,
    ) -> None:
        """Read, and answer when there is enough to read.

        At once where nobody waits (`max_wait_ms` ≤ 0), nothing is asked for, enough bytes are there, a partition has
        an error, another leader's records (a diverging epoch) or a better replica to read from.
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
        self._delayed.fetch.try_complete_else_watch(waiting, tuple(wanted), params.max_wait_ms)

    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        timeout_ms: float,
        on_answer: Callable[[Mapping[TopicPartition, DeleteRecordsAnswer]], None],
    ) -> None:
        """Forget records below offsets (−1: the high watermark), and answer when all live replicas have."""
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
        self._delayed.delete_records.try_complete_else_watch(waiting, tuple(wanted), timeout_ms)

    def elect_leaders(
        self,
        partitions: frozenset[TopicPartition],
        *,
        elect: ElectLeaders,
        timeout_ms: float,
        on_answer: Callable[[ElectionAnswers], None],
    ) -> None:
        """Have the controller elect leaders, and answer when this broker's metadata knows them."""
        began = self._replicas.context.clock.nanoseconds()

        def elected(leaders: Mapping[TopicPartition, int], errors: Mapping[TopicPartition, ErrorCode]) -> None:
            if not leaders:
                on_answer(errors)
                return
            waiting = DelayedElectLeader(self._replicas.context.metadata, leaders, errors, on_answer)
            left = timeout_ms - (self._replicas.context.clock.nanoseconds() - began) / 1_000_000
            self._delayed.elect_leader.try_complete_else_watch(waiting, tuple(leaders), max(0.0, left))

        elect(partitions, elected)

    def complete_elections(self, partitions: frozenset[TopicPartition]) -> None:
        """New metadata has come that tells of these partitions' leaders."""
        for name in partitions:
            self._delayed.elect_leader.check_and_complete(name)

    def offsets_for_leader_epoch(
        self, wanted: Mapping[TopicPartition, tuple[int | None, int]]
    ) -> dict[TopicPartition, EpochEnd]:
        """Where epochs ended; asked for with the leader epoch that is known (or None), and the one to look up."""
        answers: dict[TopicPartition, EpochEnd] = {}
        for name, (current, epoch) in wanted.items():
            try:
                partition = self._replicas.partition_or_raise(name)
                answers[name] = EpochEnd(end=last_offset_for_leader_epoch(partition, current, epoch))
            except Exception as error:
                answers[name] = EpochEnd(error=error_of(error))
        return answers

    def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        current_leader_epochs: Mapping[TopicPartition, int] | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """The first record at or after a time of each partition, or what ListOffsets' negative wishes stand for."""
        epochs = current_leader_epochs or {}
        answers: dict[TopicPartition, ListedOffset] = {}
        for name, timestamp in wanted.items():
            try:
                partition = self._replicas.partition_or_raise(name)
                found = offset_for_timestamp(
                    partition, timestamp, isolation=isolation, current_leader_epoch=epochs.get(name)
                )
                answers[name] = ListedOffset(found=found)
            except Exception as error:
                answers[name] = ListedOffset(error=error_of(error))
        return answers
