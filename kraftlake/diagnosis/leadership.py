"""The reason why a partition has no leader: the brokers that may lead it, and their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kraftlake.image.topics.directory_id import is_online
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.words import in_words

MAY_LEAD: Final = {"isr": "last in sync", "elr": "eligible to lead", "lastKnownElr": "last known eligible"}
"""The lists of brokers that may lead a partition without a leader, in words; the first one that is not empty counts."""

DIRECTORY_FAILED: Final = "log directory is offline"
REMOVED: Final = "no replica any more"
"""A broker that the end of a reassignment has left in the ELR: see `known_bugs.ELR_KEEPS_REMOVED_REPLICA`."""
NO_REPLICA = "no replica was in sync"


def may_lead(partition: dict[str, Any], brokers: dict[str, Any]) -> dict[str, Any]:
    """The reason why a PARTITION has no leader: the first non-empty list of MAY_LEAD, and its brokers' states.

    Both are JSON forms, `brokers` by id. `mayLead` is None, and `states` are empty, where no replica was in sync.
    """
    key = next((key for key in MAY_LEAD if partition[key]), None)
    ids = [] if key is None else partition[key]
    directories = dict(zip(partition["replicas"], partition["directories"], strict=True))
    states = {str(id_): _why_not(brokers.get(str(id_)), directories.get(id_)) for id_ in ids}
    if key == "elr":
        states |= {str(id_): REMOVED for id_ in ids if id_ not in directories}
    return {"mayLead": key, "states": states}


def may_lead_words(partition: dict[str, Any], brokers: dict[str, Any] | None) -> str:
    """`last in sync: 3 (fenced) 4 (fenced)`, without the states if `brokers` is None."""
    why = may_lead(partition, brokers or {})
    if why["mayLead"] is None:
        return NO_REPLICA
    states = (id_ if brokers is None else f"{id_} ({state})" for id_, state in why["states"].items())
    return f"{MAY_LEAD[why['mayLead']]}: {' '.join(states)}"


def broker_words(brokers: Sequence[int]) -> str:
    """`broker 1`, `brokers 1 and 2`; of more than six their number: `12 brokers`."""
    return node_words([f"broker {id_}" for id_ in brokers])


def node_words(nodes: Sequence[str]) -> str:
    """Nodes that are named by kind and id: `brokers 1 and 2`, `12 brokers and controller 3`."""
    of_kind: dict[str, list[str]] = {}
    for kind, _, id_ in (node.partition(" ") for node in nodes):
        of_kind.setdefault(kind, []).append(id_)
    return in_words(
        [
            f"{len(ids)} {kind}s" if len(ids) > _NAMED else f"{kind}{'' if len(ids) == 1 else 's'} {in_words(ids)}"
            for kind, ids in of_kind.items()
        ]
    )


_NAMED: Final = 6


def _why_not(broker: dict[str, Any] | None, directory: str | None) -> str:
    """The reason why a broker, whose replica is in a directory, does not lead."""
    if broker is None:
        return "not registered"
    online = [Uuid.from_string(one) for one in broker["directories"]]
    if directory is not None and not is_online(Uuid.from_string(directory), online):
        return DIRECTORY_FAILED
    if broker["fenced"]:
        return "fenced"
    return "shutting down" if broker["inControlledShutdown"] else "not elected"
