"""Produce. Source: kafka.server.KafkaApis.handleProduceRequest, org.apache.kafka.common.requests.ProduceRequest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import attrs
from kio.schema.errors import ErrorCode

from kraftlake.delta import TopicPartition
from kraftlake.image import AclOperation
from kraftlake.records.batch_format import CONTROL_BIT
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager import CorruptRecordError, ProduceAnswer, RequestServer
from kraftlake.replica_manager.logs.log_batch import TRANSACTIONAL_BIT, headers
from kraftlake.server.broker.serving.context import ServingContext, by_topic
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.messages import AT_ONCE, kafka_id, of_version

_LEADER_IN_ANSWER: Final = 10
"""The version of Produce from which on an answer names the leader (KIP-951)."""
_ZSTD_SINCE: Final = 7
_ATTRIBUTES: Final = 5
"""The place of the attributes among the fields of a batch's header."""
_COMPRESSION: Final = 0x07
_ZSTD: Final = 4
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen(kw_only=True)
class _Failed:
    """The refusal of one partition's records."""

    error: ErrorCode
    message: str | None = None


class ProduceHandler:
    """Appends batches of clients, and answers when as many replicas have them as the client wants."""

    def __init__(self, context: ServingContext, server: RequestServer) -> None:
        self._context = context
        self._server = server

    def __call__(self, request: Request) -> None:
        """Answer a Produce request."""
        body = request.body
        names = [self._name_of(topic) for topic in body.topic_data]
        failed: dict[TopicPartition, _Failed] = {}
        entries: dict[TopicPartition, bytes] = {}
        ids: dict[str, Uuid] = {}
        for topic, name in zip(body.topic_data, names, strict=True):
            if name is None:
                continue
            refusal = self._refused(request, name)
            if hasattr(topic, "topic_id"):
                ids[name] = kafka_id(topic.topic_id)
            for one in topic.partition_data:
                partition = TopicPartition(name, int(one.index))
                problem = refusal or _problem(request, one.records)
                if problem is None:
                    entries[partition] = bytes(one.records)
                else:
                    failed[partition] = problem

        def answered(answers: Mapping[TopicPartition, ProduceAnswer]) -> None:
            if body.acks == 0:
                if failed or None in names or any(one.error for one in answers.values()):
                    request.close()  # the only way to tell the client, which refreshes its metadata then
                else:
                    request.answer_nothing()
                return
            request.answer(self._response(request, names, answers, failed))

        if not entries:
            answered({})
            return
        timeout_ms = body.timeout / timedelta(milliseconds=1)
        self._server.append_records(
            entries, required_acks=int(body.acks), timeout_ms=timeout_ms, on_answer=answered, topic_ids=ids
        )

    def _name_of(self, topic: Any) -> str | None:
        """The name of a topic, which new requests name by its id; None for an id that is not known."""
        return self._context.cache.topic_name(kafka_id(topic.topic_id)) if hasattr(topic, "topic_id") else topic.name

    def _refused(self, request: Request, topic: str) -> _Failed | None:
        if not self._context.allows_on_topic(request.peer, AclOperation.WRITE, topic):
            return _Failed(error=ErrorCode.topic_authorization_failed)
        if not self._context.cache.contains(topic):
            return _Failed(error=ErrorCode.unknown_topic_or_partition)
        return None

    def _response(
        self,
        request: Request,
        names: Sequence[str | None],
        answers: Mapping[TopicPartition, ProduceAnswer],
        failed: Mapping[TopicPartition, _Failed],
    ) -> Any:
        module, context = request.module, self._context
        moved: list[TopicPartition] = []

        def partition(name: str | None, index: int) -> Any:
            at = TopicPartition(name or "", index)
            if name is None:
                answer: ProduceAnswer | _Failed = _Failed(error=ErrorCode.unknown_topic_id)
            else:
                answer = failed.get(at) or answers[at]
            error = ErrorCode(int(answer.error))
            more: dict[str, Any] = {}
            if error is ErrorCode.not_leader_or_follower and request.version >= _LEADER_IN_ANSWER:
                more["current_leader"] = context.leader_of(module, at)
                moved.append(at)
            if isinstance(answer, ProduceAnswer):
                more |= {"base_offset": answer.base_offset, "log_start_offset": answer.log_start_offset}
                if answer.log_append_time is not None:
                    more["log_append_time"] = _EPOCH + timedelta(milliseconds=answer.log_append_time)
            else:
                more |= {"base_offset": -1, "error_message": answer.message}
            return of_version(
                module.PartitionProduceResponse, index=index, error_code=error, record_errors=(), **more
            )  # fmt: skip

        named = iter(names)
        responses = by_topic(
            module.TopicProduceResponse, request.body.topic_data, "name", "partition_responses",
            lambda topic: tuple(map(partial(partition, next(named)), (int(one.index) for one in topic.partition_data))),
        )  # fmt: skip
        more: dict[str, Any] = {}
        if moved:
            more["node_endpoints"] = context.leader_endpoints(module, moved, request.peer.listener)
        return of_version(module.ProduceResponse, responses=responses, throttle_time=AT_ONCE, **more)


def _problem(request: Request, records: Any) -> _Failed | None:
    """What no log would append: anything but one batch, or one of a transaction, which no coordinator here ends."""
    if not records:
        return _Failed(error=ErrorCode.invalid_record, message="A produce request has to have records.")
    try:
        found = [(end, header[_ATTRIBUTES]) for _, end, header in headers(records)]
    except CorruptRecordError as problem:
        return _Failed(error=ErrorCode.corrupt_message, message=str(problem))
    if len(found) != 1 or found[0][0] != len(records):
        return _Failed(error=ErrorCode.invalid_record, message="A produce request has to have exactly one batch.")
    ((_, attributes),) = found
    if attributes & (TRANSACTIONAL_BIT | CONTROL_BIT):
        return _Failed(
            error=ErrorCode.invalid_txn_state,
            message="There is no coordinator of transactions here: use a producer without transactional.id.",
        )
    if attributes & _COMPRESSION == _ZSTD and request.version < _ZSTD_SINCE:
        return _Failed(error=ErrorCode.unsupported_compression_type, message="zstd needs version 7 of Produce.")
    return None
