"""Handlers of creation and deletion of topics and partitions.

Source: kafka.server.ControllerApis, ReplicationControlManager.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Final

import attrs

from kraftlake.controller.configs.config_schema import fallback_sources
from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.replication.topics import (
    CLUSTER_METADATA_TOPIC,
    NO_QUOTA,
    ApplyQuota,
    CreatableTopic,
    CreatedTopic,
    NewPartitions,
    create_partitions,
    create_topics,
    delete_topics,
)
from kraftlake.controller.result import ControllerResult
from kraftlake.controller.state import ControllerState
from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.records.uuid import Uuid
from kraftlake.server.controller.controller_node import ControllerNode, Handlers
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import of_version
from kraftlake.settings.topic_configs import TOPIC_CONFIGS

_TOPIC_CONFIG: Final = 1
_DEFAULT_CONFIG: Final = 5
"""Kafka's numbers for the source of a value; the sources below a topic have the numbers between."""
_NOT_ALLOWED: Final = "The client is not allowed this on the topic."
_WITH_OWN_ERROR: Final = 3
"""The first version of DeleteTopics with TOPIC_DELETION_DISABLED."""
_STRICT: Final = {"create_topics": 6, "delete_topics": 5, "create_partitions": 3}
"""The first versions that are refused beyond the client's quota, with THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def _quota(request: Request) -> ApplyQuota:
    """Return the quota of the partitions that the request creates or deletes."""
    if request.throttle is None:
        return NO_QUOTA
    return request.throttle.mutations(strict=request.version >= _STRICT[request.name]).record


def _may(
    node: ControllerNode, request: Request, operation: AclOperation, names: Iterable[str], *, log_denied: bool = True
) -> set[str]:
    """Return the topics on which the peer may perform the operation."""
    allows = node.authorization.allows
    return {name for name in names if allows(request, operation, ResourceType.TOPIC, name, log_denied=log_denied)}


def _repeated(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count > 1}


def _create(node: ControllerNode, request: Request) -> Future[Any]:
    asked = request.body
    names = {topic.name for topic in asked.topics}
    allowed = names
    if not node.authorization.allows_on_cluster(request, AclOperation.CREATE, log_denied=False):
        allowed = _may(node, request, AclOperation.CREATE, names)
    always_answered = {CLUSTER_METADATA_TOPIC, *_repeated(topic.name for topic in asked.topics)}
    described = _may(node, request, AclOperation.DESCRIBE_CONFIGS, names - {CLUSTER_METADATA_TOPIC}, log_denied=False)
    topics = [
        CreatableTopic(
            name=topic.name, num_partitions=int(topic.num_partitions),
            replication_factor=int(topic.replication_factor),
            assignments=[(int(one.partition_index), tuple(map(int, one.broker_ids))) for one in topic.assignments],
            configs={config.name: config.value for config in topic.configs},
        )
        for topic in asked.topics
        if topic.name in allowed | always_answered
    ]  # fmt: skip

    quota = _quota(request)

    def create(state: ControllerState) -> ControllerResult[Any]:
        made = create_topics(state, topics, validate_only=asked.validate_only, apply_quota=quota)
        sources = fallback_sources(state.image.configs, state.config)
        return ControllerResult(made.records, (made.response, sources), atomic=made.atomic)

    def answer(response: Any) -> Any:
        made, sources = response
        own = {topic.name: topic.configs for topic in topics}
        results = [
            _created(request, name, one, own[name], sources) if name in described and not one.error.is_failure
            else _result(request, name, one.error, topic_id=one.topic_id)
            for name, one in made.items()
        ]  # fmt: skip
        failure = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, _NOT_ALLOWED)
        results += [_result(request, name, failure) for name in sorted(names - allowed - always_answered)]
        return response_to(request, topics=tuple(results))

    return node.run(create, answer, timeout=asked.timeout)


def _result(request: Request, name: str, error: ApiError, *, topic_id: Uuid = Uuid.ZERO, **more: Any) -> Any:
    """Return the answer for a topic; a created topic without its configs if the peer may not see them."""
    hidden = 0 if error.is_failure else int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    values = {"topic_config_error_code": hidden, "configs": (), **more}
    return of_version(
        request.module.CreatableTopicResult, name=name, topic_id=wire_id(topic_id), error_code=error.error,
        error_message=error.message, **values,
    )  # fmt: skip


def _created(
    request: Request, name: str, topic: CreatedTopic, own: Mapping[str, Any], sources: Iterable[Mapping[str, str]]
) -> Any:
    more: dict[str, Any] = {}
    if hasattr(request.module, "CreatableTopicConfigs"):
        more["configs"] = tuple(
            request.module.CreatableTopicConfigs(
                name=config, value=value, read_only=False, is_sensitive=False,
                config_source=_TOPIC_CONFIG if config in own else _source(config, sources),
            )
            for config, value in sorted(topic.configs.items())
        )  # fmt: skip
    return _result(
        request, name, topic.error, topic_id=topic.topic_id, num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor, topic_config_error_code=0, **more,
    )  # fmt: skip


def _source(config: str, sources: Iterable[Mapping[str, str]]) -> int:
    """Return the source of a config's value that the topic itself does not set."""
    synonyms = TOPIC_CONFIGS[config].synonyms
    for number, source in enumerate(sources, start=_TOPIC_CONFIG + 1):
        if any(synonym in source for synonym in synonyms):
            return number
    return _DEFAULT_CONFIG


def _add(node: ControllerNode, request: Request) -> Future[Any]:
    asked = request.body
    names = [topic.name for topic in asked.topics]
    repeated = _repeated(names)
    allowed = _may(node, request, AclOperation.ALTER, {*names} - repeated)
    topics = [
        NewPartitions(
            name=topic.name, count=int(topic.count),
            assignments=None if topic.assignments is None
            else [tuple(map(int, one.broker_ids)) for one in topic.assignments],
        )
        for topic in asked.topics
        if topic.name in allowed | repeated
    ]  # fmt: skip

    def answer(errors: Mapping[str, ApiError]) -> Any:
        failure = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        results = {**errors, **{name: failure for name in names if name not in allowed | repeated}}
        return response_to(request, results=tuple(_partitions(request, name, error) for name, error in results.items()))

    quota = _quota(request)
    return node.run(
        lambda state: create_partitions(state, topics, validate_only=asked.validate_only, apply_quota=quota), answer,
        timeout=asked.timeout,
    )  # fmt: skip


def _partitions(request: Request, name: str, error: ApiError) -> Any:
    return request.module.CreatePartitionsTopicResult(name=name, error_code=error.error, error_message=error.message)


@attrs.frozen
class _Deletion:
    """The answer for one topic of a DeleteTopics request: by name, id, or both."""

    name: str | None
    topic_id: Uuid
    error: ApiError


def _delete(node: ControllerNode, request: Request) -> Future[Any]:
    if not node.delete_topic_enable:
        disabled = (
            ErrorCode.TOPIC_DELETION_DISABLED if request.version >= _WITH_OWN_ERROR else ErrorCode.INVALID_REQUEST
        )
        raise ControllerApiError(disabled, "Topic deletion is disabled: delete.topic.enable is false.")
    asked = [(topic, kafka_id(id_)) for topic, id_ in _topics_of(request)]
    quota = _quota(request)
    on_all = node.authorization.allows_on_cluster(request, AclOperation.DELETE, log_denied=False)

    def may(operation: AclOperation, names: Iterable[str]) -> set[str]:
        return {*names} if on_all else _may(node, request, operation, names)

    def delete(state: ControllerState) -> ControllerResult[list[_Deletion]]:
        answers, found = _chosen(state, asked, may)
        deleted = delete_topics(state, list(found), apply_quota=quota)
        answers += [_Deletion(found[id_], id_, error) for id_, error in deleted.response.items()]
        return ControllerResult(deleted.records, answers, atomic=True)

    def answer(answers: list[_Deletion]) -> Any:
        random.shuffle(answers)  # their order must not tell topics that are hidden from those that are absent
        return response_to(
            request,
            responses=tuple(
                of_version(
                    request.module.DeletableTopicResult, name=one.name, topic_id=wire_id(one.topic_id),
                    error_code=one.error.error, error_message=one.error.message,
                )
                for one in answers
            ),
        )  # fmt: skip

    return node.run(delete, answer, timeout=request.body.timeout)


def _topics_of(request: Request) -> list[tuple[str | None, Any]]:
    """Return the topics to delete, each by its name or its id."""
    if hasattr(request.body, "topic_names"):
        return [(name, None) for name in request.body.topic_names]
    return [(topic.name, topic.topic_id) for topic in request.body.topics]


def _chosen(
    state: ControllerState, asked: list[tuple[str | None, Uuid]], may: Any
) -> tuple[list[_Deletion], dict[Uuid, str]]:
    """Return the answers for topics that are not deleted, and the names of the others by id."""
    answers: list[_Deletion] = []

    def refuse(name: str | None, id_: Uuid, error: ErrorCode, message: str | None = None) -> None:
        answers.append(_Deletion(name, id_, ApiError(error, message)))

    for name, id_ in asked:
        if name is None and id_ == Uuid.ZERO:
            refuse(None, id_, ErrorCode.INVALID_REQUEST, "A topic to delete has neither a name nor an id.")
        elif name is not None and id_ != Uuid.ZERO:
            refuse(name, id_, ErrorCode.INVALID_REQUEST, "A topic to delete has both a name and an id.")
    names = Counter(name for name, id_ in asked if name is not None and id_ == Uuid.ZERO)
    ids = Counter(id_ for name, id_ in asked if name is None and id_ != Uuid.ZERO)
    for name in names:
        if names[name] > 1:
            refuse(name, Uuid.ZERO, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    for id_ in ids:
        if ids[id_] > 1:
            refuse(None, id_, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    topics = state.image.topics
    found: dict[Uuid, str] = {}
    for id_ in ids:
        topic = topics.get_topic_by_id(id_) if ids[id_] == 1 else None
        if topic is not None:
            found[id_] = topic.name
        elif ids[id_] == 1:
            refuse(None, id_, ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {id_}.")
    once = [name for name in names if names[name] == 1]
    described = may(AclOperation.DESCRIBE, {*once, *found.values()})
    deletable = may(AclOperation.DELETE, {*once, *found.values()})
    for id_, name in list(found.items()):
        if name not in deletable:
            refuse(name if name in described else None, id_, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _NOT_ALLOWED)
            del found[id_]
    for name in once:
        topic = topics.get_topic(name)
        if name not in described or (topic is not None and name not in deletable):
            refuse(name, Uuid.ZERO, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _NOT_ALLOWED)
        elif topic is None:
            refuse(name, Uuid.ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name!r}.")
        elif topic.id in found or ids[topic.id] > 1:
            found.pop(topic.id, None)
            refuse(name, topic.id, ErrorCode.INVALID_REQUEST, "The topic is named by its id, too.")
        else:
            found[topic.id] = name
    return answers, found


TOPIC_HANDLERS: Final[Handlers] = {
    "create_topics": _create,
    "delete_topics": _delete,
    "create_partitions": _add,
}
"""The handlers of CreateTopics, DeleteTopics and CreatePartitions."""
