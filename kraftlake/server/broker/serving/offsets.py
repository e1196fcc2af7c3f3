"""Handlers of ListOffsets, OffsetForLeaderEpoch and DeleteRecords. Source: kafka.server.KafkaApis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.requests.delayed_answers import DeleteRecordsAnswer
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.server.broker.serving.context import ServingContext, by_topic, fail_after_fault
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import of_version

_CONSUMER: Final = -1
_DEBUGGER: Final = -2
"""The replica ids of a consumer, and of a client that reads from any replica."""
_ISOLATIONS: Final = (0, 1)
_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""The first version of ListOffsets with each special timestamp from −3 down."""


def _is_known(timestamp: int, version: int) -> bool:
    return timestamp >= -2 or version >= _SINCE.get(timestamp, version + 1)


class OffsetsHandler:
    """Answers requests for offsets by timestamp or leader epoch, and deletes records."""

    def __init__(self, context: ServingContext, server: RequestServer) -> None:
        self._context = context
        self._server = server

    def list_offsets(self, request: Request) -> Any:
        """Answer ListOffsets: the offsets of timestamps."""
        body, module = request.body, request.module
        refused = self._refused(request, body.topics, "name", AclOperation.DESCRIBE)
        if int(getattr(body, "isolation_level", 0)) not in _ISOLATIONS:
            refused = {topic.name: ErrorCode.UNKNOWN_SERVER_ERROR for topic in body.topics} | refused
        names = [
            TopicPartition(topic.name, int(one.partition_index)) for topic in body.topics for one in topic.partitions
        ]
        twice = {name for name, times in Counter(names).items() if times > 1}
        wanted: dict[TopicPartition, int] = {}
        epochs: dict[TopicPartition, int] = {}
        for topic in body.topics:
            for one in topic.partitions:
                name = TopicPartition(topic.name, int(one.partition_index))
                if topic.name not in refused and name not in twice and _is_known(int(one.timestamp), request.version):
                    wanted[name] = int(one.timestamp)
                    if getattr(one, "current_leader_epoch", -1) >= 0:
                        epochs[name] = int(one.current_leader_epoch)
        is_committed = int(getattr(body, "isolation_level", 0)) == 1
        isolation = FetchIsolation.TXN_COMMITTED if is_committed else FetchIsolation.HIGH_WATERMARK
        if int(body.replica_id) != _CONSUMER:
            isolation = FetchIsolation.LOG_END
        found = self._server.list_offsets(
            wanted, isolation=isolation, current_leader_epochs=epochs,
            require_leader=int(body.replica_id) != _DEBUGGER,
        )  # fmt: skip

        def partition(topic: str, index: int) -> Any:
            name, kind = TopicPartition(topic, index), module.ListOffsetsPartitionResponse
            if name not in found:
                wrong = ErrorCode.INVALID_REQUEST if name in twice else ErrorCode.UNSUPPORTED_VERSION
                error = refused.get(topic, wrong)
                return kind(partition_index=index, error_code=error)
            answer = found[name]
            at = answer.found
            if at is None:
                return kind(partition_index=index, error_code=answer.error)
            epoch = -1 if at.leader_epoch is None else at.leader_epoch
            return of_version(
                kind,
                partition_index=index, error_code=ErrorCode.NONE, timestamp=at.timestamp, offset=at.offset,
                leader_epoch=epoch,
            )  # fmt: skip

        topics = by_topic(
            module.ListOffsetsTopicResponse, body.topics, "name", "partitions",
            lambda topic: tuple(
                partition(topic.name, index)
                for index in dict.fromkeys(int(one.partition_index) for one in topic.partitions)
            ),
        )  # fmt: skip
        return response_to(request, topics=topics)

    def offset_for_leader_epoch(self, request: Request) -> Any:
        """Answer OffsetForLeaderEpoch: the ends of leader epochs, from which readers detect lost records."""
        body, module = request.body, request.module
        is_node = self._context.authorization.allows_on_cluster(request, AclOperation.CLUSTER_ACTION, log_denied=False)
        refused = {} if is_node else self._refused(request, body.topics, "topic", AclOperation.DESCRIBE)
        wanted = {
            TopicPartition(topic.topic, int(one.partition)): (
                None if one.current_leader_epoch < 0 else int(one.current_leader_epoch),
                int(one.leader_epoch),
            )
            for topic in body.topics
            if topic.topic not in refused
            for one in topic.partitions
        }
        found = self._server.offsets_for_leader_epoch(wanted)

        def partition(topic: str, index: int) -> Any:
            if topic in refused:
                return module.EpochEndOffset(error_code=refused[topic], partition=index)
            answer = found[TopicPartition(topic, index)]
            error = answer.error
            if answer.end is None:
                return module.EpochEndOffset(error_code=error, partition=index)
            end = answer.end
            return of_version(
                module.EpochEndOffset,
                error_code=error, partition=index, leader_epoch=end.epoch, end_offset=end.offset,
            )  # fmt: skip

        topics = by_topic(
            module.OffsetForLeaderTopicResult, body.topics, "topic", "partitions",
            lambda topic: tuple(partition(topic.topic, int(one.partition)) for one in topic.partitions),
        )  # fmt: skip
        return response_to(request, topics=topics)

    def delete_records(self, request: Request) -> None:
        """Delete the records below offsets; the answer follows when all live replicas have deleted them."""
        body, module = request.body, request.module
        refused = self._refused(request, body.topics, "name", AclOperation.DELETE)
        offsets = {
            TopicPartition(topic.name, int(one.partition_index)): int(one.offset)
            for topic in body.topics
            if topic.name not in refused
            for one in topic.partitions
        }

        def answered(answers: Mapping[TopicPartition, DeleteRecordsAnswer]) -> None:
            def partition(topic: str, index: int) -> Any:
                kind = module.DeleteRecordsPartitionResult
                answer = answers.get(TopicPartition(topic, index))
                if answer is None:
                    return kind(partition_index=index, low_watermark=-1, error_code=refused[topic])
                error = answer.error
                return kind(partition_index=index, low_watermark=answer.low_watermark, error_code=error)

            topics = by_topic(
                module.DeleteRecordsTopicResult, body.topics, "name", "partitions",
                lambda topic: tuple(partition(topic.name, int(one.partition_index)) for one in topic.partitions),
            )  # fmt: skip
            request.answer(response_to(request, topics=topics))

        self._server.delete_records(
            offsets, timeout_ms=request.wait_ms(body.timeout), on_answer=answered,
            on_fault=partial(fail_after_fault, request),
        )  # fmt: skip

    def _refused(self, request: Request, topics: Any, field: str, operation: AclOperation) -> dict[str, ErrorCode]:
        """Return the missing topics, and the topics that the peer may not read, each with its error."""
        refused: dict[str, ErrorCode] = {}
        for topic in topics:
            name = getattr(topic, field)
            if not self._context.allows_on_topic(request, operation, name, count=len(topic.partitions)):
                refused[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not self._context.cache.contains(name):
                refused[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused
