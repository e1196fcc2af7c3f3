"""Leader elections by request, and the controller's periodic elections of preferred and unclean leaders.

Source: ReplicationControlManager of Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from kraftlake.controller.errors import ApiError, ControllerApiError
from kraftlake.controller.replication.leader_and_isr import change_records
from kraftlake.controller.replication.partition_change import Election, TargetState
from kraftlake.controller.replication.partitions import Found, without_leader, without_preferred_leader
from kraftlake.controller.result import ControllerResult, answer_each, check_limit
from kraftlake.controller.state import ControllerState
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.serde import ApiMessageAndVersion


class ElectionType(Enum):
    """The type of a requested election (org.apache.kafka.common.ElectionType)."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    state: ControllerState, election_type: ElectionType, partitions: Sequence[tuple[str, int]] | None
) -> ControllerResult[dict[tuple[str, int], ApiError]]:
    """Elect leaders of `partitions` (topic names and partition ids), or of all partitions that need an election."""
    if partitions is None:
        partitions = [(name, number) for name, number, _ in _in_need(state, election_type)]
    records, answers = answer_each(
        ((partition, election_type) for partition in partitions),
        lambda partition, kind: _election(state, *partition, kind),
    )
    check_limit(len(records), f"would write {len(records)} records")
    return ControllerResult(records, answers)


def maybe_balance_leaders(state: ControllerState) -> ControllerResult[bool]:
    """Elect preferred leaders, a limited number at a time; the response is True if more are left."""
    return _elect_some(state, _in_need(state, ElectionType.PREFERRED), Election.PREFERRED)


def maybe_elect_unclean_leaders(state: ControllerState) -> ControllerResult[bool]:
    """Elect any active replica for partitions without a leader whose topic's config allows unclean elections."""
    found = _in_need(state, ElectionType.UNCLEAN)
    return _elect_some(state, (each for each in found if state.unclean_election_enabled(each[0])), Election.UNCLEAN)


def _in_need(state: ControllerState, election_type: ElectionType) -> list[Found]:
    if election_type is ElectionType.PREFERRED:
        return without_preferred_leader(state.image.topics)
    return without_leader(state.image.topics)


def _elect_some(state: ControllerState, found: Iterable[Found], election: Election) -> ControllerResult[bool]:
    limit = state.config.max_elections_per_imbalance
    records: list[ApiMessageAndVersion] = []
    for name, number, partition in found:
        if len(records) >= limit:
            break
        topic = state.topic(name)
        assert topic is not None, "it was found in the same image"
        records += change_records(state, topic, number, partition, TargetState(election=election))
    return ControllerResult(records, len(records) >= limit)


def _election(
    state: ControllerState, name: str, number: int, election_type: ElectionType
) -> list[ApiMessageAndVersion]:
    """Return the record of an election; raises ControllerApiError if none is needed or possible."""
    topic, partition = state.partition(name, number)
    preferred = election_type is ElectionType.PREFERRED
    done = partition.leader == partition.replicas[0] if preferred else partition.leader != NO_LEADER
    if done:
        raise ControllerApiError(ErrorCode.ELECTION_NOT_NEEDED, f"{name}-{number} has the leader that it should have.")
    target = TargetState(election=Election.PREFERRED if preferred else Election.UNCLEAN)
    records = change_records(state, topic, number, partition, target)
    if not records:
        error = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE if preferred else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        raise ControllerApiError(error, f"No replica of {name}-{number} that may lead it is available.")
    return records
