"""The known bug of Kafka, if any, that a partition's violation shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.uuid import Uuid
from kraftlake.replay.spec.cluster_states import ClusterStates, level_of
from kraftlake.replay.spec.known_bugs import (
    CANCELLED_TO_FENCED,
    ELR_KEEPS_REMOVED_REPLICA,
    ELR_LOST_BY_DIRECTORIES,
    LAST_KNOWN_LEADER_FENCED,
    NOBODY_LAST_KNOWN,
    REMOVED_IS_ELECTED,
    REPLACED_REASSIGNMENT_ADDS,
    UNFENCED_IN_SHUTDOWN,
    UNFENCED_WITH_LOST_DIRECTORY,
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
        if _led_by_resumed(name, cluster, before, after, deltas):
            return UNFENCED_IN_SHUTDOWN
    if name in UNFENCED_WITH_LOST_DIRECTORY.properties and _loses_directory_as_unfenced(cluster, after, deltas):
        return UNFENCED_WITH_LOST_DIRECTORY
    if before is None:
        return None
    if name in REMOVED_IS_ELECTED.properties and _leaves_failed_directory(cluster, before, after, deltas[1]):
        return REMOVED_IS_ELECTED
    for bug, shows in _OF_CHANGES.items():
        if name in bug.properties and bug.shows_at(level) and shows(before, after):
            return bug
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


def _loses_directory_as_unfenced(cluster: ClusterStates, after: PartitionStates, deltas: tuple[int, int]) -> bool:
    """Whether the operation unfences the leader, which had the directory of its replica before."""
    leader = int(after.leaders[0])
    was, now = (cluster.image(delta).cluster.brokers.get(leader) for delta in deltas)
    if was is None or now is None or was.epoch != now.epoch or not was.fenced or now.fenced:
        return False
    return was.has_online_dir(_directory_of(after, leader))


def _leaves_failed_directory(
    cluster: ClusterStates, before: PartitionStates, after: PartitionStates, delta: int
) -> bool:
    """Whether the leader, whose log directory is offline, loses the lead to a broker that is no replica any more."""
    leader, was_leader = int(after.leaders[0]), int(before.leaders[0])
    broker, replicas = cluster.image(delta).cluster.brokers.get(was_leader), _members(after, "replicas")
    if broker is None or was_leader not in replicas or _members(after, "isr") != {leader}:
        return False
    return replicas == _members(before, "replicas") and not broker.has_online_dir(_directory_of(after, was_leader))


def _directory_of(states: PartitionStates, replica: int) -> Uuid:
    number = states.list_of("directories").members[states.list_of("replicas").members.tolist().index(replica)]
    return Uuid.from_string(states.names.directories[int(number)].as_py())


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


def _assigns_directories(before: PartitionStates, after: PartitionStates) -> bool:
    """Whether directories change, the ISR and the replicas do not, and no ELR is left."""
    same = ("isr", "replicas", "adding_replicas", "removing_replicas")
    kept = all(_members(before, name) == _members(after, name) for name in same)
    return kept and _members(before, "directories") != _members(after, "directories") and not _members(after, "elr")


def _had_no_leader(before: PartitionStates, after: PartitionStates) -> bool:
    """Whether nobody led the partition, and does not now."""
    is_nobody = _members(after, "last_known_elr") == {NO_LEADER}
    return is_nobody and before.leaders[0] == after.leaders[0] == NO_LEADER


def _cancelled(before: PartitionStates, after: PartitionStates) -> bool:
    """Whether a reassignment is cancelled whose ISR is of added replicas, and nobody leads what is left."""
    adding, replicas = _members(before, "adding_replicas"), after.list_of("replicas").members.tolist()
    is_cancelled = bool(adding) and not adding & {*replicas} and _members(before, "isr") <= adding
    return is_cancelled and after.list_of("isr").members.tolist() == replicas[:1] and after.leaders[0] == NO_LEADER


_OF_CHANGES: Final[dict[KnownBug, Callable[[PartitionStates, PartitionStates], bool]]] = {
    ELR_KEEPS_REMOVED_REPLICA: _keeps_removed,
    REPLACED_REASSIGNMENT_ADDS: _keeps_adding,
    ELR_LOST_BY_DIRECTORIES: _assigns_directories,
    NOBODY_LAST_KNOWN: _had_no_leader,
    CANCELLED_TO_FENCED: _cancelled,
}
"""The bugs that a partition's states before and after show."""
