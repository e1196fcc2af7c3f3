"""Handlers of Metadata, DescribeTopicPartitions and DescribeCluster. Source: kafka.server.KafkaApis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.image.topics.topic_names import problem_of_name
from kraftlake.protocol.describe import BROKERS, CONTROLLERS
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.publisher.metadata_responses import Cursor, PartitionMetadata, TopicMetadata
from kraftlake.records.uuid import Uuid
from kraftlake.server.broker.serving.context import ServingContext
from kraftlake.server.requests.authorization import NOT_ASKED_FOR
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import of_version

_FIRST_VERSIONS: Final = 0
_LISTENERS_SINCE: Final = 6
_FENCED_SINCE: Final = 2
_NULL_NAME_SINCE: Final = 12
_NO_ONE: Final = -1


class MetadataHandler:
    """Answers from the metadata cache, and requests the creation of missing topics by `create`.

    `create` gets names, and returns the error of each name that can't be created. A page of topics has up to
    `most_partitions` partitions.
    """

    def __init__(
        self,
        context: ServingContext,
        create: Callable[[Request, list[str]], dict[str, ErrorCode]] | None = None,
        *,
        most_partitions: int = 2_000,
    ) -> None:
        self._context = context
        self._create = create
        self._most_partitions = most_partitions

    def metadata(self, request: Request) -> Any:
        """Answer Metadata with the brokers and the requested topics."""
        body, module, context = request.body, request.module, self._context
        cache, peer = context.cache, request.peer
        asked = body.topics
        if request.version < _NULL_NAME_SINCE and any(
            topic.name is None or getattr(topic, "topic_id", None) is not None for topic in asked or ()
        ):
            raise ControllerApiError(ErrorCode.INVALID_REQUEST)
        is_all = asked is None or (request.version == _FIRST_VERSIONS and not asked)
        ids = [topic for topic in asked or () if getattr(topic, "topic_id", None) is not None]
        if is_all:
            names: Iterable[str] = sorted(cache.all_topics())
        else:
            if any(topic.name is None and getattr(topic, "topic_id", None) is None for topic in asked):
                raise ControllerApiError(ErrorCode.INVALID_REQUEST)
            names = dict.fromkeys(str(topic.name) for topic in asked) if not ids else ()
        answers: list[Any] = []
        found_ids: dict[str, Any] = {}
        for topic in ids:
            name = cache.topic_name(kafka_id(topic.topic_id))
            if name is None:
                answers.append(_topic(module, ErrorCode.UNKNOWN_TOPIC_ID, None, topic.topic_id))
            elif not context.allows_on_topic(request, AclOperation.DESCRIBE, name):
                answers.append(_topic(module, ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic.topic_id))
            else:
                found_ids[name] = topic.topic_id
        allowed = []
        for name in names:
            if context.allows_on_topic(request, AclOperation.DESCRIBE, name, log_denied=not is_all):
                allowed.append(name)
            elif not is_all:
                answers.append(_topic(module, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name))
        missing = {name: None for name in allowed if not cache.contains(name)}
        may_create = not is_all and getattr(body, "allow_auto_topic_creation", True)
        wants_operations = getattr(body, "include_topic_authorized_operations", False)
        answers += self._missing(request, missing, may_create=may_create, wants_operations=wants_operations)
        for one in cache.topic_metadata(
            [*(name for name in allowed if name not in missing), *found_ids],
            peer.listener,
            error_unavailable_endpoints=request.version == _FIRST_VERSIONS,
            error_unavailable_listeners=request.version >= _LISTENERS_SINCE,
        ):
            operations = (
                context.authorization.operations(request, ResourceType.TOPIC, one.name)
                if wants_operations
                else NOT_ASKED_FOR
            )
            answers.append(_described(module, one, operations))
        more: dict[str, Any] = {}
        if getattr(body, "include_cluster_authorized_operations", False):
            more["cluster_authorized_operations"] = context.authorization.operations_on_cluster(request)
        controller = cache.random_alive_broker_id()
        return response_to(
            request,
            brokers=tuple(
                of_version(
                    module.MetadataResponseBroker, node_id=node.id, host=node.host, port=node.port, rack=node.rack
                )
                for node in cache.alive_broker_nodes(peer.listener)
            ),
            cluster_id=context.cluster_id,
            controller_id=_NO_ONE if controller is None else controller,
            topics=tuple(answers),
            **more,
        )

    def _missing(
        self, request: Request, names: Collection[str], *, may_create: bool, wants_operations: bool
    ) -> list[Any]:
        """Return the answers for missing topics; a topic that may be created exists a moment later."""
        module, context = request.module, self._context
        errors: dict[str, ErrorCode] = {}
        creatable = []
        for name in names:
            errors[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if problem_of_name(name) is not None:
                errors[name] = ErrorCode.INVALID_TOPIC_EXCEPTION
            elif may_create and self._create is not None:
                if context.authorization.allows_on_cluster(
                    request, AclOperation.CREATE, log_denied=False
                ) or context.allows_on_topic(request, AclOperation.CREATE, name):
                    creatable.append(name)
                else:
                    errors[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if creatable and self._create is not None:
            errors |= self._create(request, creatable)
        return [
            _topic(
                module, errors[name], name,
                operations=context.authorization.operations(request, ResourceType.TOPIC, name)
                if wants_operations and errors[name] != ErrorCode.TOPIC_AUTHORIZATION_FAILED
                else NOT_ASKED_FOR,
            )
            for name in names
        ]  # fmt: skip

    def describe_topic_partitions(self, request: Request) -> Any:
        """Answer DescribeTopicPartitions, in pages (KIP-966)."""
        body, module, context = request.body, request.module, self._context
        cache, peer = context.cache, request.peer
        names = sorted({str(topic.name) for topic in body.topics} or cache.all_topics())
        cursor, is_all = body.cursor, not body.topics
        if cursor is not None:
            is_unknown = not is_all and cursor.topic_name not in names
            if is_unknown or cursor.partition_index < 0:
                raise ControllerApiError(ErrorCode.INVALID_REQUEST)
            names = [name for name in names if name >= cursor.topic_name]
        hidden = {name: None for name in names if not context.allows_on_topic(request, AclOperation.DESCRIBE, name)}
        described = cache.describe_topics(
            [name for name in names if name not in hidden],
            peer.listener,
            start_index=lambda name: (
                int(cursor.partition_index) if cursor is not None and name == cursor.topic_name else 0
            ),
            limit=max(1, min(int(body.response_partition_limit), self._most_partitions)),
            ignore_errors=is_all,
        )
        topics = [
            _described(
                module, one, context.authorization.operations(request, ResourceType.TOPIC, one.name), with_elr=True
            )
            for one in described.topics
        ]
        if not is_all:
            topics += [
                _topic(module, ErrorCode.TOPIC_AUTHORIZATION_FAILED, name, kind="DescribeTopicPartitionsResponseTopic")
                for name in hidden
            ]
        following: Cursor | None = described.next_cursor
        return response_to(
            request,
            topics=tuple(topics),
            next_cursor=None
            if following is None
            else module.Cursor(topic_name=following.topic_name, partition_index=following.partition_index),
        )

    def describe_cluster(self, request: Request) -> Any:
        """Answer DescribeCluster (KIP-700)."""
        body, module, context = request.body, request.module, self._context
        endpoints = int(getattr(body, "endpoint_type", BROKERS))
        if endpoints != BROKERS:
            error = (
                ErrorCode.MISMATCHED_ENDPOINT_TYPE if endpoints == CONTROLLERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            )
            message = "This is a broker, which describes brokers: ask a controller for the controllers."
            return response_to(
                request, error_code=error, error_message=message,
                cluster_id=context.cluster_id, brokers=(), endpoint_type=BROKERS,
            )  # fmt: skip
        with_fenced = request.version >= _FENCED_SINCE and body.include_fenced_brokers
        nodes = context.cache.broker_nodes(request.peer.listener)
        controller = context.cache.random_alive_broker_id()
        operations = NOT_ASKED_FOR
        if body.include_cluster_authorized_operations:
            operations = context.authorization.operations_on_cluster(request)
        return response_to(
            request,
            endpoint_type=BROKERS,
            cluster_id=context.cluster_id,
            controller_id=_NO_ONE if controller is None else controller,
            brokers=tuple(
                of_version(
                    module.DescribeClusterBroker,
                    broker_id=node.id,
                    host=node.host,
                    port=node.port,
                    rack=node.rack,
                    is_fenced=node.is_fenced,
                )
                for node in nodes
                if with_fenced or not node.is_fenced
            ),
            cluster_authorized_operations=operations,
        )


def _topic(
    module: Any,
    error: ErrorCode,
    name: str | None,
    topic_id: Any = None,
    *,
    kind: str = "MetadataResponseTopic",
    operations: int = NOT_ASKED_FOR,
) -> Any:
    """Return the answer for a topic that can't be described; old versions have no null for an unknown name."""
    made = getattr(module, kind)
    if name is None and made.__version__ < 12:
        name = ""
    return of_version(
        made,
        error_code=error, name=name, topic_id=topic_id, partitions=(), topic_authorized_operations=operations,
    )  # fmt: skip


def _described(module: Any, topic: TopicMetadata, operations: int, *, with_elr: bool = False) -> Any:
    kind = module.DescribeTopicPartitionsResponseTopic if with_elr else module.MetadataResponseTopic
    return of_version(
        kind,
        error_code=topic.error,
        name=topic.name,
        topic_id=None if topic.topic_id == Uuid.ZERO else wire_id(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=_partitions(module, topic.partitions, with_elr=with_elr),
        topic_authorized_operations=operations,
    )


def _partitions(module: Any, partitions: Iterable[PartitionMetadata], *, with_elr: bool) -> tuple[Any, ...]:
    """Convert partitions to kio's classes; all field names but the error's are the same."""
    kind = module.DescribeTopicPartitionsResponsePartition if with_elr else module.MetadataResponsePartition
    names = tuple(field.name for field in fields(kind) if field.name != "error_code")
    values = attrgetter(*names)
    return tuple(kind(error_code=one.error, **dict(zip(names, values(one), strict=True))) for one in partitions)
