"""The rule on who leaves the eligible leader replicas. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.replay.spec.cluster_states import ClusterStates
from kraftlake.replay.spec.partition_rules import Ruling
from kraftlake.replay.spec.partition_states import PartitionStates


def elr_ruling(
    cluster: ClusterStates,
    states: tuple[PartitionStates, PartitionStates],
    where: Any,
    deltas: Any,
    first_replicas: Callable[[int, int], int],
) -> Ruling:
    """The ruling on changes from states to others by the deltas (int64[n]) beside them; `where` (bool[n]) selects some.

    A registration and what it takes out of ELRs are of one delta, as Kafka writes them at once. `first_replicas` gives
    how many replicas the first partition of a topic has after a delta: Kafka's minimum is not higher. Source:
    ReplicationControlManager.getTopicEffectiveMinIsr.
    """
    before, after = states
    isr, elr = after.list_of("isr"), after.list_of("elr")
    lost = [before.list_of(name).without(isr).without(elr) for name in ("isr", "elr")]
    new_leader = (after.leaders != NO_LEADER) & (after.leaders != before.leaders)
    is_clean = before.has("isr", after.leaders) | before.has("elr", after.leaders)
    judged = where & (~new_leader | is_clean) & (lost[0].any | lost[1].any | before.list_of("elr").any)
    minimum = np.zeros(len(after), np.int64)
    some = np.flatnonzero(judged)
    for row, topic, delta in zip(some.tolist(), after.topics[some].tolist(), deltas[some].tolist(), strict=True):
        least = cluster.min_isr(after.names.topics[topic].as_py(), delta)
        minimum[row] = least or 0
    judged &= isr.lengths < minimum
    violated = np.zeros(len(after), np.bool_)
    for row in np.flatnonzero(judged & (lost[0].any | lost[1].any)).tolist():
        delta, topic = int(deltas[row]), int(after.topics[row])
        gone = {member for lists in lost for member in lists.take(np.array([row])).members.tolist()}
        below = int(isr.lengths[row]) < first_replicas(topic, delta)
        violated[row] = below and not gone <= cluster.registered(delta)
    return Ruling("elr_keeps_members", judged, violated)
