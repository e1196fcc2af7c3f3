"""Replicas that were created anew after the loss of their log directory, where no other replica had their records."""

from __future__ import annotations

import attrs

from kraftlake.diagnosis.doctor.check_input import CheckInput
from kraftlake.diagnosis.doctor.directory_moves import DirectoryMove
from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.diagnosis.doctor.registration_history import state_at
from kraftlake.diagnosis.doctor.replica_states import ReplicaUse, may_lead
from kraftlake.image.topics.directory_id import is_online
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.uuid import Uuid


@attrs.frozen(kw_only=True)
class ReplacedReplica:
    """The replica of `partition` on a broker was in `lost`, and is in `directory` since a position in the log.

    `has_leader` says whether the partition is led now, by a replica that lacks the records in `lost`.
    """

    partition: str
    broker: int
    lost: Uuid
    directory: Uuid
    since: LogPosition
    has_leader: bool


def replaced_replicas(case: CheckInput) -> dict[str, dict[int, ReplacedReplica]]:
    """The replaced replicas by partition and broker: replaced lately, or still without a leader."""
    chains: dict[tuple[str, int, int], list[DirectoryMove]] = {}
    for move in case.timeline.moves:
        chain = chains.setdefault((move.topic_id, move.partition, move.broker), [])
        before = next((place for place, one in enumerate(chain) if one.before == move.after), None)
        if before is not None:
            del chain[before:]  # it is back where it lay
        elif _was_gone(case, move):
            chain.append(move)
    found: dict[str, dict[int, ReplacedReplica]] = {}
    for (topic_id, partition, broker), chain in chains.items():
        topic = case.image.topics.get_topic_by_id(Uuid.from_string(topic_id))
        state = None if topic is None else topic.partitions.get(partition)
        if not chain or topic is None or state is None or state.directory(broker) != chain[-1].after:
            continue
        has_none = state.leader == NO_LEADER
        lost = {
            other
            for other in state.replicas
            if chains.get((topic_id, partition, other))
            or ReplicaUse.of(case.image, state, other) is ReplicaUse.NO_DIRECTORY
        }
        may_lead_empty = has_none and broker in may_lead(state)
        first = next((move for move in chain if may_lead_empty or move.others <= lost), None)
        if first is None or (not has_none and (first.at.timestamp or -1) < case.recent_begin):
            continue
        found.setdefault(f"{topic.name}-{partition}", {})[broker] = ReplacedReplica(
            partition=f"{topic.name}-{partition}",
            broker=broker,
            lost=first.before,
            directory=chain[-1].after,
            since=first.at,
            has_leader=not has_none,
        )
    return found


def _was_gone(case: CheckInput, move: DirectoryMove) -> bool:
    """Whether the directory was gone; else the replica was moved with its records."""
    registered = state_at(case.timeline.registrations.brokers.get(move.broker, ()), move.at.offset)
    return registered is not None and not is_online(move.before, registered.directories)
