"""What a broker that serves nobody answers itself.

Source: org.apache.kafka.common.requests.AbstractRequest.getErrorResponse, kafka.server.SimpleApiVersionManager.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import timedelta
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import i32Timedelta

from kraftlake.protocol import end_of_message
from kraftlake.records.varint import read_uvarint

_HEADER: Final = struct.Struct(">hhih")
_CORRELATION: Final = struct.Struct(">i")
_API_VERSIONS: Final = 18
_AT_ONCE: Final = i32Timedelta.parse(timedelta(0))
_ERROR: Final = ErrorCode.not_leader_or_follower
_OF_A_BROKER: Final = frozenset({"alter_replica_log_dirs", "describe_log_dirs"})
"""The APIs whose answer is about the broker that is asked."""
_OF_CONTROLLERS: Final = frozenset(
    {
        "vote", "begin_quorum_epoch", "end_quorum_epoch", "fetch_snapshot", "alter_partition", "envelope",
        "broker_registration", "broker_heartbeat", "allocate_producer_ids", "controller_registration",
        "assign_replicas_to_dirs", "update_raft_voter",
    }
)  # fmt: skip
"""The APIs that Kafka's brokers don't offer."""


def api_of(frame: bytes) -> str | None:
    """The name of the API that a request is of; None for one that is not known here."""
    return api_key_map.get(_HEADER.unpack_from(frame)[0])


def is_of_any_broker(frame: bytes) -> bool:
    """Whether another broker answers a request as this one would, if it served: it is not about data or directories."""
    name = api_of(frame)
    return name not in _OF_A_BROKER and name not in _ANSWERS


def api_versions(frame: bytes) -> bytes | None:
    """The answer to ApiVersions, without the length before it: what a broker of Kafka 4.4 offers; None for others."""
    api_key, version, correlation, _ = _HEADER.unpack_from(frame)
    if api_key != _API_VERSIONS:
        return None
    known = version in _versions("api_versions")
    return _encoded(correlation, _api_versions(version if known else 0, is_known=known), flexible_header=False)


def refusal(frame: bytes) -> bytes | None:
    """The answer to a request for data, without the length before it: NOT_LEADER_OR_FOLLOWER for each partition.

    None where the connection has to be closed: for a Produce that wants no answer, and for all other requests. A client
    takes that for a broker that has just gone away, and asks another; an answer with an error could end it, and an
    empty one be taken for the truth.

    Raises ValueError, IndexError, struct.error, MalformedError or a SerialError for what is no request.
    """
    name = api_of(frame)
    answer = None if name is None else _ANSWERS.get(name)
    asked = None if answer is None else request_in(frame)
    if name is None or answer is None or asked is None:
        return None
    _, version, correlation, _ = _HEADER.unpack_from(frame)
    response = _entity(name, version, EntityType.response)
    made = answer(import_module(response.__module__), asked)
    return None if made is None else _encoded(correlation, made, flexible_header=response.__flexible__)


def request_in(frame: bytes) -> Any:
    """A request as kio declares it; None for a version or an API that is not known here. Raises as `refusal`."""
    _, version, _, length = _HEADER.unpack_from(frame)
    position = _HEADER.size + max(length, 0)
    name = api_of(frame)
    if name is None or version not in _versions(name):
        return None
    request = _entity(name, version, EntityType.request)
    if request.__flexible__:
        position = _after_tags(frame, position)
    end_of_message(request, frame, position)
    asked, _ = entity_reader(request)(frame, position)
    return asked


def _versions(name: str) -> range:
    known = schema_name_map[name]
    return range(min(known), max(known) + 1)


@lru_cache
def _entity(name: str, version: int, kind: EntityType) -> Any:
    module, _, type_name = schema_name_map[name][version][kind].partition(":")  # type: ignore[index]
    return getattr(import_module(module), type_name)


def _after_tags(frame: bytes, position: int) -> int:
    count, position = read_uvarint(frame, position)
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    return position


def _encoded(correlation: int, response: Any, *, flexible_header: bool) -> bytes:
    buffer = io.BytesIO()
    buffer.write(_CORRELATION.pack(correlation) + (b"\0" if flexible_header else b""))
    entity_writer(type(response))(buffer, response)
    return buffer.getvalue()


def _of(kind: Any, **values: Any) -> Any:
    """An instance with those of the values that its version has."""
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names})


def _topics(kind: Any, topics: Iterable[Any], field: str, partitions: Callable[[Any], tuple[Any, ...]]) -> Any:
    """The answers of topics, each under the name and the id that it was asked for."""
    return tuple(
        _of(
            kind,
            **{name: getattr(topic, name) for name in ("name", "topic", "topic_id") if hasattr(topic, name)},
            **{field: partitions(topic)},
        )
        for topic in topics
    )


def _api_versions(version: int, *, is_known: bool) -> Any:
    """For a version that is not known here, the oldest answer, with an error (KIP-511)."""
    response = _entity("api_versions", version, EntityType.response)
    module = import_module(response.__module__)
    offered = tuple(
        module.ApiVersion(api_key=key, min_version=_versions(name)[0], max_version=_versions(name)[-1])
        for key, name in api_key_map.items()
        if name not in _OF_CONTROLLERS
    )
    error = ErrorCode.none if is_known else ErrorCode.unsupported_version
    return _of(response, error_code=error, api_keys=offered, throttle_time=_AT_ONCE)


def _produce(response: Any, asked: Any) -> Any:
    if asked.acks == 0:
        return None

    def partitions(topic: Any) -> tuple[Any, ...]:
        return tuple(
            _of(
                response.PartitionProduceResponse,
                index=one.index, error_code=_ERROR, base_offset=-1, record_errors=(),
            )
            for one in topic.partition_data
        )  # fmt: skip

    topics = _topics(response.TopicProduceResponse, asked.topic_data, "partition_responses", partitions)
    return _of(response.ProduceResponse, responses=topics, throttle_time=_AT_ONCE)


def _fetch(response: Any, asked: Any) -> Any:
    def partitions(topic: Any) -> tuple[Any, ...]:
        return tuple(
            _of(
                response.PartitionData,
                partition_index=one.partition, error_code=_ERROR, high_watermark=-1, last_stable_offset=-1,
                aborted_transactions=(), records=None,
            )
            for one in topic.partitions
        )  # fmt: skip

    topics = _topics(response.FetchableTopicResponse, asked.topics, "partitions", partitions)
    return _of(
        response.FetchResponse, responses=topics, throttle_time=_AT_ONCE, error_code=ErrorCode.none, session_id=0
    )


def _list_offsets(response: Any, asked: Any) -> Any:
    def partitions(topic: Any) -> tuple[Any, ...]:
        kind = response.ListOffsetsPartitionResponse
        return tuple(
            _of(kind, partition_index=one.partition_index, error_code=_ERROR, offset=-1, leader_epoch=-1)
            for one in topic.partitions
        )

    topics = _topics(response.ListOffsetsTopicResponse, asked.topics, "partitions", partitions)
    return _of(response.ListOffsetsResponse, topics=topics, throttle_time=_AT_ONCE)


def _offset_for_leader_epoch(response: Any, asked: Any) -> Any:
    def partitions(topic: Any) -> tuple[Any, ...]:
        return tuple(
            _of(response.EpochEndOffset, partition=one.partition, error_code=_ERROR) for one in topic.partitions
        )

    topics = _topics(response.OffsetForLeaderTopicResult, asked.topics, "partitions", partitions)
    return _of(response.OffsetForLeaderEpochResponse, topics=topics, throttle_time=_AT_ONCE)


def _delete_records(response: Any, asked: Any) -> Any:
    def partitions(topic: Any) -> tuple[Any, ...]:
        kind = response.DeleteRecordsPartitionResult
        return tuple(
            _of(kind, partition_index=one.partition_index, error_code=_ERROR, low_watermark=-1)
            for one in topic.partitions
        )

    topics = _topics(response.DeleteRecordsTopicResult, asked.topics, "partitions", partitions)
    return _of(response.DeleteRecordsResponse, topics=topics, throttle_time=_AT_ONCE)


_ANSWERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "produce": _produce,
    "fetch": _fetch,
    "list_offsets": _list_offsets,
    "offset_for_leader_epoch": _offset_for_leader_epoch,
    "delete_records": _delete_records,
}
