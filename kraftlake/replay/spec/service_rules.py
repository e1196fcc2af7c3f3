"""The rules on partitions and the brokers that host them, at the end of an operation. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.broker_lists import BrokerLists
from kraftlake.replay.spec.cluster_states import ClusterStates, in_service
from kraftlake.replay.spec.partition_rules import Ruling
from kraftlake.replay.spec.partition_states import PartitionStates


def service_rulings(cluster: ClusterStates, after: PartitionStates, deltas: Any, elr_on: Any) -> Iterator[Ruling]:
    """The rulings on states after the deltas (int64[n]) beside them; `elr_on` (bool[n]) as of there."""
    isr = after.list_of("isr")
    out = _rows_with(isr, ~cluster.are(isr.members, np.repeat(deltas, isr.lengths), in_service))
    last_one = (isr.lengths == 1) & (after.leaders == NO_LEADER)
    yield Ruling("isr_in_service", isr.any, out & ~last_one)
    leaderless = np.flatnonzero(after.leaders == NO_LEADER)
    eligible = np.zeros(len(after), np.bool_)
    eligible[leaderless] = _have_candidate(cluster, after.take(leaderless), deltas[leaderless], elr_on[leaderless])
    yield Ruling("leader_where_eligible", after.leaders == NO_LEADER, eligible)
    with_elr = np.flatnonzero(elr_on & after.list_of("elr").any)
    judged, violated = np.zeros(len(after), np.bool_), np.zeros(len(after), np.bool_)
    sizes, topics = isr.lengths[with_elr].tolist(), after.topics[with_elr].tolist()
    for row, size, topic, delta in zip(with_elr.tolist(), sizes, topics, deltas[with_elr].tolist(), strict=True):
        least = cluster.min_isr(after.names.topics[topic].as_py(), delta)
        judged[row], violated[row] = least is not None, least is not None and size >= least
    yield Ruling("elr_only_below_min_isr", judged, violated)


def election_rulings(
    cluster: ClusterStates, before: PartitionStates, after: PartitionStates, had: Any, deltas: Any
) -> Iterator[Ruling]:
    """The rulings on what an operation has changed; `had` (bool[n]) says which partitions existed before."""
    led = after.leaders != NO_LEADER
    elected = led & (~had | (after.leaders != before.leaders))
    some = np.flatnonzero(elected)
    leaders, times = after.leaders[some], deltas[some]
    bad = np.zeros(len(after), np.bool_)
    bad[some] = ~cluster.are(leaders, times, in_service)
    yield Ruling("leader_in_service", elected, bad)
    offline = np.zeros(len(after), np.bool_)
    hosts = after.take(some)
    offline[some] = _rows_with(hosts.led_by, ~_are_online(cluster, hosts, hosts.led_by, times))
    yield Ruling("leader_directory_online", elected, offline)
    isr, old = after.list_of("isr"), before.list_of("isr")
    rows = np.flatnonzero(had)
    kept = np.zeros(len(after) + 1, np.int32)
    np.cumsum(np.where(had, old.lengths, 0), out=kept[1:])
    joined = isr.without(BrokerLists(kept, old.take(rows).members))
    strangers = _rows_with(joined, ~cluster.are(joined.members, np.repeat(deltas, joined.lengths), in_service))
    yield Ruling("isr_joins_in_service", joined.any, strangers)


def _have_candidate(cluster: ClusterStates, states: PartitionStates, deltas: Any, elr_on: Any) -> Any:
    """Whether a leaderless partition has a member of its ISR, or of its ELR without one, that may lead."""
    found = np.zeros(len(states), np.bool_)
    isr, elr = states.list_of("isr"), states.list_of("elr")
    elr = elr.without(elr.without(states.list_of("replicas")))  # leaders are looked for among the replicas
    for lists, where in ((isr, isr.any), (elr, ~isr.any & elr_on)):
        active = cluster.are(lists.members, np.repeat(deltas, lists.lengths), in_service)
        found |= where & _rows_with(lists, active & _are_online(cluster, states, lists, deltas))
    return found


def _are_online(cluster: ClusterStates, states: PartitionStates, lists: BrokerLists, deltas: Any) -> Any:
    """Whether each member of lists of replicas has its replica in a directory that is online (bool)."""
    replicas, directories = states.list_of("replicas"), states.list_of("directories")
    online, rows = np.ones(len(lists.members), np.bool_), np.repeat(np.arange(len(lists)), lists.lengths)
    numbers = np.full(len(lists.members), -1, np.int64)
    for place in range(int(replicas.lengths.max(initial=0))):
        at = np.flatnonzero(replicas.lengths[rows] > place)
        same = at[replicas.members[replicas.bounds[rows[at]] + place] == lists.members[at]]
        numbers[same] = directories.members[directories.bounds[rows[same]] + place]
    for number in np.unique(numbers[numbers >= 0]).tolist():
        directory, some = Uuid.from_string(states.names.directories[number].as_py()), np.flatnonzero(numbers == number)

        def has_online(broker: Any, directory: Uuid = directory) -> bool:
            return broker is None or broker.has_online_dir(directory)

        online[some] = cluster.are(lists.members[some], deltas[rows[some]], has_online)
    return online


def _rows_with(lists: BrokerLists, members: Any) -> Any:
    """Whether a list has one of the members in a mask (bool[n])."""
    found = np.zeros(len(lists), np.bool_)
    found[np.repeat(np.arange(len(lists)), lists.lengths)[members]] = True
    return found
