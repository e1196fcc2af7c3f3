"""Creation and deletion of topics, and of additional partitions.

Sources: org.apache.kafka.controller.ReplicationControlManager and kafka.server.ControllerApis of Kafka 4.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import attrs

from kraftlake.controller.configs.alter_configs import ConfigOperation, OpType, alter_config_resource, clear_elr_records
from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.replication.assignments import check_manual_assignment, new_partition, place
from kraftlake.controller.replication.topic_names import colliding_topic
from kraftlake.controller.result import ControllerResult, answer_each, check_limit
from kraftlake.controller.state import ControllerState
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_names import problem_of_name
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import RemoveTopicRecord, TopicRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid

DEFAULT = -1
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
MOST_PARTITIONS_PER_BROKER: Final = 100_000
"""The maximum number of a cluster's partitions per registered broker; their folders and states take 600 MB."""
K = TypeVar("K", bound=Hashable)
ApplyQuota: TypeAlias = Callable[[int], object]
"""Counts created or deleted partitions; raises ControllerApiError for more than the client's quota (KIP-599)."""
NO_QUOTA: Final[ApplyQuota] = lambda _: None  # noqa: E731


@attrs.frozen(kw_only=True)
class CreatableTopic:
    """A topic to create, with numbers of partitions and replicas (-1: the defaults), or `assignments` by partition id.

    A config of None is refused: a new topic has no config to delete.
    """

    name: str
    num_partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class CreatedTopic:
    """The answer for one topic; the other fields describe the topic that was, or would be, created.

    `configs` are the effective values by name.
    """

    error: ApiError = ApiError.NONE
    topic_id: Uuid = Uuid.ZERO
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = attrs.field(factory=dict, repr=False)


@attrs.frozen(kw_only=True)
class NewPartitions:
    """The new number of partitions of a topic; `assignments` has the brokers of each additional partition."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


def create_topics(
    state: ControllerState,
    topics: Sequence[CreatableTopic],
    *,
    validate_only: bool = False,
    apply_quota: ApplyQuota = NO_QUOTA,
) -> ControllerResult[dict[str, CreatedTopic]]:
    """Create the valid topics in one batch; the answer of each other topic has the reason.

    A repeated name is refused, as is `__cluster_metadata`. Raises ControllerApiError(POLICY_VIOLATION) for more than
    10,000 partitions, or records, with `validate_only` as well, and for more partitions than the brokers' maximum.
    """
    names = state.image.topics.topics_by_name()
    answers: dict[str, CreatedTopic] = {}
    records: list[ApiMessageAndVersion] = []
    topics, refused = _without_forbidden(topics)
    answers.update({name: CreatedTopic(error=error) for name, error in refused.items()})
    total = sum(_partition_count(state, topic) for topic in topics)
    check_limit(total, f"creates {total} partitions")
    _check_room(state, total)
    for topic in topics:
        try:
            _check_name(topic.name, names)
            records += _create_topic(state, topic, answers, apply_quota)
        except ControllerApiError as refusal:
            answers[topic.name] = CreatedTopic(error=refusal.api_error)
    check_limit(len(records), f"would write {len(records)} records")
    return ControllerResult(() if validate_only else records, answers, atomic=True)


def _without_forbidden(topics: Sequence[CreatableTopic]) -> tuple[list[CreatableTopic], dict[str, ApiError]]:
    """Return the topics that a request may create, and the refusals of the others by name."""
    refused = _duplicates((topic.name for topic in topics), "topic name")
    if any(topic.name == CLUSTER_METADATA_TOPIC for topic in topics):
        reason = f"A topic can't be called {CLUSTER_METADATA_TOPIC}: that is the metadata log itself."
        refused.setdefault(CLUSTER_METADATA_TOPIC, ApiError(ErrorCode.INVALID_REQUEST, reason))
    return [topic for topic in topics if topic.name not in refused], refused


def _duplicates(keys: Iterable[K], what: str) -> dict[K, ApiError]:
    """Return the refusal of each key that occurs more than once."""
    return {
        key: ApiError(ErrorCode.INVALID_REQUEST, f"The request has the {what} {key} {count} times.")
        for key, count in Counter(keys).items()
        if count > 1
    }


def _partition_count(state: ControllerState, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return state.config.num_partitions if topic.num_partitions == DEFAULT else max(0, topic.num_partitions)


def _check_room(state: ControllerState, more: int) -> None:
    """Refuse more partitions than brokers have memory and file systems for: Kafka's brokers would fail."""
    brokers = len(state.image.cluster.brokers)
    count, most = state.image.topics.partition_count + more, MOST_PARTITIONS_PER_BROKER * brokers
    if more and brokers and count > most:
        raise ControllerApiError(
            ErrorCode.POLICY_VIOLATION,
            f"The cluster would have {count} partitions, and may have {most}: {MOST_PARTITIONS_PER_BROKER} for each of "
            f"its {brokers} brokers. Delete topics, or add brokers.",
        )


def _check_name(name: str, names: Mapping[str, object]) -> None:
    problem = problem_of_name(name)
    if problem is not None:
        raise ControllerApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in names:
        raise ControllerApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name!r} exists already.")
    other = colliding_topic(name, names)
    if other is not None:
        raise ControllerApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic {name!r} and the existing {other!r} would have the same name in metrics.",
        )


def _create_topic(
    state: ControllerState, topic: CreatableTopic, answers: dict[str, CreatedTopic], apply_quota: ApplyQuota
) -> list[ApiMessageAndVersion]:
    nulls = sorted(name for name, value in topic.configs.items() if value is None)
    if nulls:
        raise ControllerApiError(ErrorCode.INVALID_CONFIG, f"A new topic can't have configs without a value: {nulls}.")
    operations = {
        name: ConfigOperation(OpType.SET, value) for name, value in topic.configs.items() if value is not None
    }
    configs: list[ApiMessageAndVersion] = []
    if operations:
        resource = ConfigResource(TOPIC_RESOURCE, topic.name)
        configs = alter_config_resource(state, resource, operations, newly_created=True)
        configs += clear_elr_records(state, configs)
    partitions = _assigned(state, topic) if topic.assignments else _placed(state, topic)
    apply_quota(len(partitions))
    topic_id = state.new_id()
    answers[topic.name] = CreatedTopic(
        topic_id=topic_id,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs={**state.fallback_topic_configs(), **topic.configs},
    )
    options = state.writer_options
    return [
        ApiMessageAndVersion(TopicRecord(name=topic.name, topic_id=topic_id), 0),
        *configs,
        *(partition.to_record(topic_id, number, options) for number, partition in enumerate(partitions)),
    ]


def _assigned(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    for what, given in (
        ("replication factor", topic.replication_factor),
        ("number of partitions", topic.num_partitions),
    ):
        if given != DEFAULT:
            raise ControllerApiError(
                ErrorCode.INVALID_REQUEST, f"With an assignment by hand the {what} is left at -1, not given as {given}."
            )
    partitions: dict[int, PartitionRegistration] = {}
    factor: int | None = None
    for number, replicas in topic.assignments:
        if number in partitions:
            raise ControllerApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Partition {number} is assigned more than once."
            )
        check_manual_assignment(state, replicas, factor)
        factor = len(replicas)
        refusal = f"Partition {number} can't be assigned"
        error = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        partitions[number] = new_partition(state, replicas, error=error, refusal=refusal)
    if sorted(partitions) != list(range(len(partitions))):
        raise ControllerApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The partitions must be numbered from 0 on without a gap."
        )
    return [partitions[number] for number in range(len(partitions))]


def _placed(state: ControllerState, topic: CreatableTopic) -> list[PartitionRegistration]:
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        raise ControllerApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor must be above 0, or -1 for the default."
        )
    if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
        raise ControllerApiError(
            ErrorCode.INVALID_PARTITIONS, "The number of partitions must be above 0, or -1 for the default."
        )
    config = state.config
    factor = config.default_replication_factor if topic.replication_factor == DEFAULT else topic.replication_factor
    count = config.num_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
    refusal = f"{factor} replicas can't be placed"
    return [
        new_partition(state, replicas, error=ErrorCode.INVALID_REPLICATION_FACTOR, refusal=refusal)
        for replicas in place(state, partitions=count, replication_factor=factor)
    ]


def delete_topics(
    state: ControllerState, ids: Sequence[Uuid], *, apply_quota: ApplyQuota = NO_QUOTA
) -> ControllerResult[dict[Uuid, ApiError]]:
    """Delete topics by id; UNKNOWN_TOPIC_ID for an unknown id, INVALID_REQUEST for a repeated one."""
    answers = _duplicates(ids, "topic id")
    records = []
    for topic_id in ids:
        if topic_id in answers:
            continue
        topic = state.image.topics.get_topic_by_id(topic_id)
        if topic is None:
            answers[topic_id] = ApiError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with the id {topic_id}.")
            continue
        try:
            apply_quota(len(topic.partitions))
        except ControllerApiError as refusal:
            answers[topic_id] = refusal.api_error
            continue
        answers[topic_id] = ApiError.NONE
        records.append(ApiMessageAndVersion(RemoveTopicRecord(topic_id=topic_id), 0))
    return ControllerResult(records, answers, atomic=True)


def create_partitions(
    state: ControllerState,
    topics: Sequence[NewPartitions],
    *,
    validate_only: bool = False,
    apply_quota: ApplyQuota = NO_QUOTA,
) -> ControllerResult[dict[str, ApiError]]:
    """Add partitions to topics; each topic has its own answer, and a repeated one is refused.

    Raises as `create_topics`.
    """
    refused = _duplicates((topic.name for topic in topics), "topic name")
    topics = [topic for topic in topics if topic.name not in refused]
    total = 0
    for topic in topics:
        image = state.topic(topic.name)
        if image is not None and topic.count >= 0:
            total += max(0, topic.count - len(image.partitions))
    check_limit(total, f"adds {total} partitions")
    _check_room(state, total)
    records, answers = answer_each(
        ((topic.name, topic) for topic in topics), lambda _, topic: _add_partitions(state, topic, apply_quota)
    )
    return ControllerResult(() if validate_only else records, {**refused, **answers}, atomic=True)


def _add_partitions(
    state: ControllerState, topic: NewPartitions, apply_quota: ApplyQuota
) -> list[ApiMessageAndVersion]:
    image = state.topic(topic.name)
    if image is None:
        raise ControllerApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic.name!r}.")
    first = len(image.partitions)
    if topic.count <= first:
        raise ControllerApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic {topic.name!r} has {first} partitions already, so {topic.count} would be no increase.",
        )
    additional = topic.count - first
    if topic.assignments is not None and len(topic.assignments) != additional:
        raise ControllerApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{additional} partitions are to be added, and {len(topic.assignments)} assigned.",
        )
    apply_quota(additional)
    factor = len(next(iter(sorted(image.partitions.items())))[1].replicas)
    if topic.assignments is not None:
        error, chosen = ErrorCode.INVALID_REPLICA_ASSIGNMENT, [tuple(replicas) for replicas in topic.assignments]
        for replicas in chosen:
            check_manual_assignment(state, replicas, factor)
    else:
        error = ErrorCode.INVALID_REPLICATION_FACTOR
        chosen = place(state, partitions=additional, replication_factor=factor)
    records = []
    for number, replicas in enumerate(chosen, start=first):
        partition = new_partition(state, replicas, error=error, refusal=f"Partition {number} can't be added")
        records.append(partition.to_record(image.id, number, state.writer_options))
    return records
