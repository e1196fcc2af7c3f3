"""Handler of Produce.

Source: kafka.server.KafkaApis.handleProduceRequest, org.apache.kafka.common.requests.ProduceRequest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import Any, Final

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id
from kraftlake.records.batch_header import (
    COMPRESSION_BITS,
    HEADER,
    LENGTH_FROM,
    MAGIC,
    OFFSET_AND_LENGTH,
    header_at,
    parse_header,
)
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import CorruptRecordError
from kraftlake.replica_manager.requests.delayed_answers import ProduceAnswer
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.server.broker.serving.context import ServingContext, by_topic, fail_after_fault
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import of_version

_LEADER_IN_ANSWER: Final = 10
"""The first version of Produce whose answer names the leader (KIP-951)."""
_ZSTD_SINCE: Final = 7
"""The index of the attributes in the fields of a batch's header."""
_MAGIC_AT: Final = 16
_SMALLEST: Final = 14
"""The minimum of a batch's length field, in any format version."""
_ZSTD: Final = 4


class _Moment(datetime):
    """A client's timestamp, which may be outside the range of datetime: kio writes the result of `timestamp`."""

    _ms: int

    @classmethod
    def of(cls, ms: int) -> _Moment:
        """Return the moment of a time in epoch ms."""
        made = cls.fromtimestamp(0, UTC)
        made._ms = ms
        return made

    def timestamp(self) -> Fraction:  # type: ignore[override]
        """The time in seconds as a fraction, which is exact to the millisecond; a float is not."""
        return Fraction(self._ms, 1000)


@attrs.frozen(kw_only=True)
class _Failed:
    """The refusal of one partition's records."""

    error: ErrorCode
    message: str | None = None


class ProduceHandler:
    """Appends batches of clients, and answers when the requested number of replicas has them."""

    def __init__(self, context: ServingContext, server: RequestServer) -> None:
        self._context = context
        self._server = server

    def __call__(self, request: Request) -> None:
        """Answer a Produce request."""
        body = request.body
        if body.transactional_id is None and _has_transactions(body):
            self._refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return
        names = [self._name_of(topic) for topic in _with_partitions(body)]
        failed: dict[TopicPartition, _Failed] = {}
        entries: dict[TopicPartition, bytes] = {}
        ids: dict[str, Uuid] = {}
        for topic, name in zip(_with_partitions(body), names, strict=True):
            if name is None:
                continue
            refusal = self._refused(request, name, len(topic.partition_data))
            if hasattr(topic, "topic_id"):
                ids[name] = kafka_id(topic.topic_id)
            for one in topic.partition_data:
                partition = TopicPartition(name, int(one.index))
                batch = refusal or _one_batch(request, one.records)
                if isinstance(batch, _Failed):
                    failed[partition] = batch
                else:
                    entries[partition] = batch
        size = len(request.frame)
        request = _without_records(request)
        body, throttle = request.body, request.throttle

        def answered(answers: Mapping[TopicPartition, ProduceAnswer]) -> None:
            if throttle is not None:
                throttle.is_exempt = body.acks == 0
                throttle.produced(size)
            if body.acks == 0:
                if failed or None in names or any(one.error for one in answers.values()):
                    request.close()  # the only way to inform the client, which refreshes its metadata then
                else:
                    request.answer_nothing()
                return
            request.answer(self._response(request, names, answers, failed))

        if not entries:
            answered({})
            return
        self._server.append_records(
            entries, required_acks=int(body.acks), timeout_ms=request.wait_ms(body.timeout), on_answer=answered,
            on_fault=partial(fail_after_fault, request), topic_ids=ids,
        )  # fmt: skip

    def _name_of(self, topic: Any) -> str | None:
        """The name of a topic, which newer requests name by id; None for an unknown id."""
        return self._context.cache.topic_name(kafka_id(topic.topic_id)) if hasattr(topic, "topic_id") else topic.name

    def _refuse_all(self, request: Request, error: ErrorCode) -> None:
        if request.body.acks == 0:
            request.close()
            return
        kind = request.module.PartitionProduceResponse
        responses = by_topic(
            request.module.TopicProduceResponse, _with_partitions(request.body), "name", "partition_responses",
            lambda topic: tuple(
                of_version(kind, index=int(one.index), error_code=error, base_offset=-1, record_errors=())
                for one in topic.partition_data
            ),
        )  # fmt: skip
        request.answer(response_to(request, responses=responses))

    def _refused(self, request: Request, topic: str, partitions: int) -> _Failed | None:
        if not self._context.allows_on_topic(request, AclOperation.WRITE, topic, count=partitions):
            return _Failed(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if not self._context.cache.contains(topic):
            return _Failed(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
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
                answer: ProduceAnswer | _Failed = _Failed(error=ErrorCode.UNKNOWN_TOPIC_ID)
            else:
                answer = failed.get(at) or answers[at]
            error = answer.error
            more: dict[str, Any] = {}
            if error == ErrorCode.NOT_LEADER_OR_FOLLOWER and request.version >= _LEADER_IN_ANSWER:
                more["current_leader"] = context.leader_of(module, at)
                moved.append(at)
            if isinstance(answer, ProduceAnswer):
                more |= {
                    "base_offset": answer.base_offset, "log_start_offset": answer.log_start_offset,
                    "error_message": answer.message, "record_errors": _record_errors(module, answer),
                }  # fmt: skip
                if answer.log_append_time is not None:
                    more["log_append_time"] = _Moment.of(answer.log_append_time)
            else:
                more |= {"base_offset": -1, "error_message": answer.message}
            return of_version(
                module.PartitionProduceResponse, **{"index": index, "error_code": error, "record_errors": (), **more}
            )

        named = iter(names)
        responses = by_topic(
            module.TopicProduceResponse, _with_partitions(request.body), "name", "partition_responses",
            lambda topic: tuple(map(partial(partition, next(named)), (int(one.index) for one in topic.partition_data))),
        )  # fmt: skip
        more: dict[str, Any] = {}
        if moved:
            more["node_endpoints"] = context.leader_endpoints(module, moved, request.peer.listener)
        return response_to(request, responses=responses, **more)


def _without_records(request: Request) -> Request:
    """Return the request reduced to the fields that its answer needs.

    Source: kafka.server.KafkaApis, which clears the records as well.
    """
    topics = tuple(
        replace(topic, partition_data=tuple(replace(one, records=None) for one in topic.partition_data))
        for topic in request.body.topic_data
    )
    return request.reduced(replace(request.body, topic_data=topics))


def _with_partitions(body: Any) -> list[Any]:
    """The topics that an answer names: those with records for at least one partition."""
    return [topic for topic in body.topic_data if topic.partition_data]


def _record_errors(module: Any, answer: ProduceAnswer) -> tuple[Any, ...]:
    """The errors of single records (KIP-467); empty in versions without them."""
    if not hasattr(module, "BatchIndexAndErrorMessage"):
        return ()
    return tuple(
        module.BatchIndexAndErrorMessage(batch_index=one.place, batch_index_error_message=one.message)
        for one in answer.records
    )


def _first_batch(records: bytes) -> tuple[int, int] | None:
    """Return the magic number and the end of the first batch of some bytes; None if no whole batch is there.

    Raises CorruptRecordError for bytes that are not a batch of any version.
    """
    if len(records) < OFFSET_AND_LENGTH.size:
        return None
    _, length = OFFSET_AND_LENGTH.unpack_from(records)
    if length < _SMALLEST:
        raise CorruptRecordError(f"A record batch of {length} bytes is too small.")
    if len(records) <= _MAGIC_AT:
        return None
    magic = records[_MAGIC_AT]
    if magic > MAGIC:
        raise CorruptRecordError(f"Record batches of format {magic} are not known.")
    end = LENGTH_FROM + length
    return None if end > len(records) else (magic, end)


def _one_batch(request: Request, records: bytes | None) -> bytes | _Failed:
    """Return the only batch that a partition's records may have; truncated bytes after it are dropped.

    Source: org.apache.kafka.common.requests.ProduceRequest.validateRecords.
    """
    try:
        first = _first_batch(records or b"")
        if records is None or first is None:
            return _Failed(error=ErrorCode.INVALID_RECORD, message="A produce request has to have a record batch.")
        magic, end = first
        if magic != MAGIC:
            return _Failed(error=ErrorCode.INVALID_RECORD, message=f"Record batches of format {magic} are too old.")
        if _first_batch(records[end:]) is not None:
            message = "A produce request has to have exactly one record batch."
            return _Failed(error=ErrorCode.INVALID_RECORD, message=message)
    except CorruptRecordError as problem:
        return _Failed(error=ErrorCode.CORRUPT_MESSAGE, message=str(problem))
    if end < HEADER.size:
        return _Failed(error=ErrorCode.CORRUPT_MESSAGE, message=f"A record batch of {end} bytes has no header.")
    header = header_at(records)
    if header.is_transactional:
        return _Failed(
            error=ErrorCode.INVALID_TXN_STATE,
            message="There is no coordinator of transactions here: use a producer without transactional.id.",
        )
    if header.attributes & COMPRESSION_BITS == _ZSTD and request.version < _ZSTD_SINCE:
        return _Failed(error=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message="zstd needs version 7 of Produce.")
    return bytes(records[:end])


def _has_transactions(body: Any) -> bool:
    """Whether one of the batches is transactional."""
    return any(
        (header := parse_header(one.records or b"")) is not None and header.magic == MAGIC and header.is_transactional
        for topic in body.topic_data
        for one in topic.partition_data
    )
