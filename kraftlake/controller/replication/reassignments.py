"""Reassignments of partitions: start, cancellation and listing.

Source: ReplicationControlManager.alterPartitionReassignments of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import attrs

from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.replication.assignments import check_manual_assignment
from kraftlake.controller.replication.leader_and_isr import change_records, election_of
from kraftlake.controller.replication.partition_change import TargetState
from kraftlake.controller.replication.partitions import reassigning
from kraftlake.controller.replication.reassignment import Reassignment, Revert, is_reassigning
from kraftlake.controller.result import ControllerResult, answer_each
from kraftlake.controller.state import ControllerState
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.serde import ApiMessageAndVersion

PartitionName: TypeAlias = tuple[str, int]


@attrs.frozen(kw_only=True)
class OngoingReassignment:
    """The reassignment of a partition that is in progress."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


def alter_partition_reassignments(
    state: ControllerState,
    targets: Sequence[tuple[PartitionName, Sequence[int] | None]],
    *,
    allow_replication_factor_change: bool = True,
) -> ControllerResult[dict[PartitionName, ApiError]]:
    """Start a reassignment of each partition to its target replicas, or cancel one, for None."""

    def alter(partition: PartitionName, replicas: Sequence[int] | None) -> list[ApiMessageAndVersion]:
        return _alter(state, *partition, replicas, allow_replication_factor_change)

    records, answers = answer_each(targets, alter)
    return ControllerResult(records, answers, atomic=True)


def _alter(
    state: ControllerState, name: str, number: int, replicas: Sequence[int] | None, allow_factor_change: bool
) -> list[ApiMessageAndVersion]:
    topic, partition = state.partition(name, number)
    if replicas is None:
        target = _cancel(state, topic, number, partition)
    else:
        target = _begin(state, partition, replicas, allow_factor_change)
    return change_records(state, topic, number, partition, target)


def _cancel(state: ControllerState, topic: TopicImage, number: int, partition: PartitionRegistration) -> TargetState:
    if not is_reassigning(partition):
        raise ControllerApiError(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{topic.name}-{number} is not being reassigned."
        )
    revert = Revert.of(partition)
    if revert.unclean and not state.unclean_election_enabled(topic.name):
        raise ControllerApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The reassignment of {topic.name}-{number} can't be taken back without an unclean election, which the "
            "topic does not allow.",
        )
    return TargetState(
        isr=revert.isr,
        replicas=revert.replicas,
        removing=(),
        adding=(),
        election=election_of(state, topic.name),
    )


def _begin(
    state: ControllerState, partition: PartitionRegistration, replicas: Sequence[int], allow_factor_change: bool
) -> TargetState:
    check_manual_assignment(state, replicas, None)
    if not allow_factor_change:
        before = len({*partition.replicas, *partition.adding_replicas} - set(partition.removing_replicas))
        if before != len(replicas):
            raise ControllerApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor would change from {before} to {len(replicas)}.",
            )
    reassignment = Reassignment.of(partition.replicas, replicas)
    return TargetState(
        replicas=reassignment.replicas,
        removing=reassignment.removing or None,
        adding=reassignment.adding or None,
    )


def list_partition_reassignments(
    image: MetadataImage, partitions: Sequence[PartitionName] | None = None
) -> dict[PartitionName, OngoingReassignment]:
    """The reassignments in progress, of all partitions or of the given ones; for the committed image."""
    if partitions is None:
        found = {(name, number): partition for name, number, partition in reassigning(image.topics)}
    else:
        found = {}
        for name, number in partitions:
            topic = image.topics.get_topic(name)
            partition = None if topic is None else topic.partitions.get(number)
            if partition is not None and is_reassigning(partition):
                found[name, number] = partition
    return {
        key: OngoingReassignment(
            replicas=partition.replicas,
            adding_replicas=partition.adding_replicas,
            removing_replicas=partition.removing_replicas,
        )
        for key, partition in found.items()
    }
