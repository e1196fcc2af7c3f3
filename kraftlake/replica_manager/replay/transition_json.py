"""The JSON of `kraftlake replay --json`."""

from __future__ import annotations

from typing import Any

from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.replica_manager.replay.causes import Cause
from kraftlake.replica_manager.replay.replayed_broker import ReplayedBroker
from kraftlake.replica_manager.transitions import Transition


def transition_to_json(transition: Transition, cause: Cause | None, offset: int) -> dict[str, Any]:
    """Convert a transition: `offset` is the last offset of its delta, record offset and type are its cause's.

    Fields that the transition lacks are omitted.
    """
    form: dict[str, Any] = {
        "offset": offset,
        "recordOffset": None if cause is None else cause.offset,
        "recordType": None if cause is None else cause.type,
        "action": transition.kind.value,
    }
    if transition.partition is not None:
        form["partition"] = str(transition.partition)
    if transition.topic_id is not None:
        form["topicId"] = str(transition.topic_id)
    if transition.after is not None:
        form |= _state(transition.after)
        form["previous"] = None if transition.before is None else _state(transition.before)
    if transition.fetcher is not None:
        name = transition.fetcher
        form["fetcher"] = {"id": name.fetcher_id, "leader": name.leader_id, "host": name.host, "port": name.port}
    if transition.offset is not None:
        form["fetchOffset"] = transition.offset
    if transition.directory is not None:
        form["directory"] = transition.directory
    if transition.reason:
        form["reason"] = transition.reason
    return form


def _state(registration: PartitionRegistration) -> dict[str, Any]:
    return {
        "leader": registration.leader,
        "leaderEpoch": registration.leader_epoch,
        "partitionEpoch": registration.partition_epoch,
        "isr": list(registration.isr),
        "replicas": list(registration.replicas),
    }


def summary_to_json(broker: ReplayedBroker, offset: int) -> dict[str, Any]:
    """Return the last line: the partitions that the broker leads and follows after `offset`.

    `offset` is above the offset of the broker's image if the replay ends within a metadata transaction.
    """
    leads, follows = broker.roles()
    return {
        "summary": {
            "broker": broker.broker_id,
            "offset": offset,
            "leaderOf": sorted(map(str, leads)),
            "followerOf": sorted(map(str, follows)),
        }
    }
