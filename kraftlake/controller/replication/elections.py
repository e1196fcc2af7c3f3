"""Requested elections, and those that the controller starts itself: preferred leaders and unclean elections.

Source: ReplicationControlManager of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from kraftlake.controller.errors import ApiError, Errors
from kraftlake.controller.replication.leader_and_isr import change_context
from kraftlake.controller.replication.partition_change import Election, TargetState, build_partition_change
from kraftlake.controller.replication.partitions import without_leader, without_preferred_leader
from kraftlake.controller.result import ControllerResult, check_records
from kraftlake.controller.state import ControllerState
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.serde import ApiMessageAndVersion


class ElectionType(Enum):
    """What is asked for (org.apache.kafka.common.ElectionType)."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    state: ControllerState, election_type: ElectionType, partitions: Sequence[tuple[str, int]] | None
) -> ControllerResult[dict[tuple[str, int], ApiError]]:
    """Elect leaders of the `partitions` (topic name and id), or of all: then nothing is said where none was needed."""
    records: list[ApiMessageAndVersion] = []
    answers: dict[tuple[str, int], ApiError] = {}
    if partitions is not None:
        for name, number in partitions:
            answers[name, number] = elect_leader(state, name, number, election_type, records)
    else:
        for name, topic in sorted(state.image.topics.topics_by_name().items()):
            for number in sorted(topic.partitions):
                error = elect_leader(state, name, number, election_type, records)
                if error.error is not Errors.ELECTION_NOT_NEEDED:
                    answers[name, number] = error
    check_records(records)
    return ControllerResult(records, answers)


def elect_leader(
    state: ControllerState, name: str, number: int, election_type: ElectionType, records: list[ApiMessageAndVersion]
) -> ApiError:
    """Add the election of one partition to `records`, or say why there is none."""
    topic = state.topic(name)
    partition = None if topic is None else topic.partitions.get(number)
    if topic is None or partition is None:
        return ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {name}-{number}.")
    preferred = election_type is ElectionType.PREFERRED
    done = partition.leader == partition.replicas[0] if preferred else partition.leader != NO_LEADER
    if done:
        return ApiError(Errors.ELECTION_NOT_NEEDED, f"{name}-{number} has the leader that it should have.")
    target = TargetState(election=Election.PREFERRED if preferred else Election.UNCLEAN)
    record = build_partition_change(partition, change_context(state, topic, number, partition), target)
    if record is not None:
        records.append(record)
        return ApiError.NONE
    error = Errors.PREFERRED_LEADER_NOT_AVAILABLE if preferred else Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
    return ApiError(error, f"No replica of {name}-{number} that may lead it is available.")


def maybe_balance_leaders(state: ControllerState) -> ControllerResult[bool]:
    """Elect preferred leaders, a limited number at a time; the response says whether more are left."""
    limit = state.config.max_elections_per_imbalance
    records: list[ApiMessageAndVersion] = []
    for name, number, partition in without_preferred_leader(state.image.topics):
        if len(records) >= limit:
            break
        topic = state.topic(name)
        assert topic is not None, "it was found in the same image"
        target = TargetState(election=Election.PREFERRED)
        record = build_partition_change(partition, change_context(state, topic, number, partition), target)
        if record is not None:
            records.append(record)
    return ControllerResult(records, len(records) >= limit)


def maybe_elect_unclean_leaders(state: ControllerState) -> ControllerResult[bool]:
    """Elect any live replica where none in sync is live and the topic's config allows unclean elections."""
    limit = state.config.max_elections_per_imbalance
    records: list[ApiMessageAndVersion] = []
    for name, number, _ in without_leader(state.image.topics):
        if len(records) >= limit:
            break
        if state.unclean_election_enabled(name):
            elect_leader(state, name, number, ElectionType.UNCLEAN, records)
    return ControllerResult(records, len(records) >= limit)
