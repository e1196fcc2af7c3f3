"""Replicas whose log directory was gone and that were made anew in another one, where no other was in sync."""

from __future__ import annotations

import attrs

from kraftlake.diagnosis.doctor.case import RECENT_HOURS, Case
from kraftlake.diagnosis.doctor.directory_moves import DirectoryMove
from kraftlake.diagnosis.doctor.group import LogPosition
from kraftlake.diagnosis.doctor.registration_history import state_at
from kraftlake.image import NO_LEADER, is_online
from kraftlake.records import Uuid


@attrs.frozen(kw_only=True)
class ReplacedReplica:
    """The replica of `partition` on a broker lay in `lost`, and is in `directory` since a place in the log.

    `has_leader` says whether the partition is led now, by a replica that lacks what lay there.
    """

    partition: str
    broker: int
    lost: Uuid
    directory: Uuid
    since: LogPosition
    has_leader: bool


def replaced_replicas(case: Case) -> dict[str, ReplacedReplica]:
    """By partition its replica that was replaced: lately, or still without a leader."""
    chains: dict[tuple[str, int, int], list[DirectoryMove]] = {}
    for move in case.timeline.moves:
        chain = chains.setdefault((move.topic_id, move.partition, move.broker), [])
        before = next((place for place, one in enumerate(chain) if one.before == move.after), None)
        if before is not None:
            del chain[before:]  # it is back where it lay
        elif _was_gone(case, move):
            chain.append(move)
    recent = case.end_ms - RECENT_HOURS * 3_600_000
    found = {}
    for (topic_id, partition, broker), chain in chains.items():
        topic = case.image.topics.get_topic_by_id(Uuid.from_string(topic_id))
        state = None if topic is None else topic.partitions.get(partition)
        if not chain or topic is None or state is None or state.directory(broker) != chain[-1].after:
            continue
        if state.leader != NO_LEADER and (chain[0].at.timestamp or -1) < recent:
            continue
        found[f"{topic.name}-{partition}"] = ReplacedReplica(
            partition=f"{topic.name}-{partition}",
            broker=broker,
            lost=chain[0].before,
            directory=chain[-1].after,
            since=chain[0].at,
            has_leader=state.leader != NO_LEADER,
        )
    return found


def _was_gone(case: Case, move: DirectoryMove) -> bool:
    """Whether the directory was gone, and no other replica in sync; else it was moved, or fills from its leader."""
    registered = state_at(case.timeline.registrations.brokers.get(move.broker, ()), move.at.offset)
    return move.was_last and registered is not None and not is_online(move.before, registered.directories)
