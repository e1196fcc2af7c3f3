"""The known bug of Kafka, if any, that a partition's violation shows."""

from __future__ import annotations

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.replay.spec.cluster_states import ClusterStates, level_of
from kraftlake.replay.spec.known_bugs import (
    ELR_KEEPS_REMOVED_REPLICA,
    LAST_KNOWN_LEADER_FENCED,
    REPLACED_REASSIGNMENT_ADDS,
    UNFENCED_IN_SHUTDOWN,
    KnownBug,
)
from kraftlake.replay.spec.partition_states import PartitionStates


def bug_of(
    name: str, cluster: ClusterStates, before: PartitionStates | None, after: PartitionStates, deltas: tuple[int, int]
) -> KnownBug | None:
    """The bug that a violation of the property `name` by one partition shows, None for none.

    `before` and `after` are the partition's states; `deltas` are the last one before the operation, and the one that
    made the violation.
    """
    level = level_of(cluster.image(deltas[1]).features)
    if name in LAST_KNOWN_LEADER_FENCED.properties:
        if LAST_KNOWN_LEADER_FENCED.shows_at(level) and _led_by_last_known(before, after):
            return LAST_KNOWN_LEADER_FENCED
        return UNFENCED_IN_SHUTDOWN if _led_by_resumed(name, cluster, before, after, deltas) else None
    if name in ELR_KEEPS_REMOVED_REPLICA.properties and before is not None:
        return ELR_KEEPS_REMOVED_REPLICA if _keeps_removed(before, after) else None
    if name in REPLACED_REASSIGNMENT_ADDS.properties and before is not None:
        return REPLACED_REASSIGNMENT_ADDS if _keeps_adding(before, after) else None
    return None


def _members(states: PartitionStates, *lists: str) -> set[int]:
    return {member for name in lists for member in states.list_of(name).members.tolist()}


def _led_by_last_known(before: PartitionStates | None, after: PartitionStates) -> bool:
    leader = int(after.leaders[0])
    return before is not None and leader != NO_LEADER and _members(before, "last_known_elr") == {leader}


def _led_by_resumed(
    name: str,
    cluster: ClusterStates,
    before: PartitionStates | None,
    after: PartitionStates,
    deltas: tuple[int, int],
) -> bool:
    """Whether the brokers out of service were unfenced during their shutdown, and a new one leads since then."""
    earlier, now = deltas
    out = {broker for broker in _members(after, "isr") if not cluster.is_in_service(broker, now)}
    if name == "isr_in_service":
        return all(cluster.is_resumed(broker, now) for broker in out)
    leader, was_in = int(after.leaders[0]), set[int]() if before is None else _members(before, "isr")
    elected = cluster.is_resumed(leader, now) and not cluster.is_resumed(leader, earlier)
    return elected and out - was_in <= {leader}


def _keeps_removed(before: PartitionStates, after: PartitionStates) -> bool:
    """Whether all members of the ELR that are no replicas were so before, or were removed by a reassignment's end."""
    known, replicas = _members(before, "elr"), _members(before, "replicas")
    strangers = _members(after, "elr") - _members(after, "replicas")
    ended = not _members(after, "adding_replicas", "removing_replicas")
    removed = replicas & (known | _members(before, "isr")) if ended else set[int]()
    return strangers <= removed | (known - replicas)


def _keeps_adding(before: PartitionStates, after: PartitionStates) -> bool:
    """Whether a reassignment has kept what the one before it adds, all of which are replicas."""
    adding, removing = _members(after, "adding_replicas"), _members(after, "removing_replicas")
    return adding == _members(before, "adding_replicas") and adding | removing <= _members(after, "replicas")
