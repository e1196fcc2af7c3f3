"""The conditions of partitions that the doctor and what-if look for, as functions of columns. Imports numpy.

One function serves both to find the concerned partitions of an image, and the change at which each became so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kraftlake.image.partition_health import is_under_min_isr
from kraftlake.image.topics.partition_registration import NO_LEADER, LeaderRecoveryState
from kraftlake.tables.events.partition_events import PartitionColumns

PartitionCondition: TypeAlias = Callable[[PartitionColumns, Any], Any]
"""A function that returns which of n partitions are concerned (bool[n]); its second argument is min.insync.replicas of
each (int32[n]).
"""


def _offline(states: PartitionColumns, _: Any) -> Any:
    return states.leader == NO_LEADER


def _under_min_isr(states: PartitionColumns, min_isr: Any) -> Any:
    return is_under_min_isr(states.isr.lengths, states.hosts.replicas.lengths, min_isr)


def _under_replicated(states: PartitionColumns, _: Any) -> Any:
    """A mask of partitions with a replica out of sync that no reassignment is adding."""
    return states.hosts.staying().without(states.isr).any


def _being_reassigned(states: PartitionColumns, _: Any) -> Any:
    return states.hosts.moving


def _recovering(states: PartitionColumns, _: Any) -> Any:
    return states.recovery == LeaderRecoveryState.RECOVERING


CONDITIONS: Final[Mapping[str, PartitionCondition]] = {
    "offline": _offline,
    "under_min_isr": _under_min_isr,
    "under_replicated": _under_replicated,
    "being_reassigned": _being_reassigned,
    "recovering": _recovering,
}
"""The conditions by name."""
