"""The end of a history: faults stop, the cluster becomes whole within a bound, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.records.uuid import Uuid
from simulator.compacted_logs import COMPACTED, records_of
from simulator.invariants import violated
from simulator.mirrors import Committed, held_batches
from simulator.scheduler import SECOND
from simulator.specification import (
    ALTER_PARTITION_REACHED_OR_ZERO,
    CONSISTENT_READ,
    EVENTUALLY_ANSWERED,
    EVENTUALLY_METADATA_CONVERGES,
    EVENTUALLY_REASSIGNMENT_COMPLETES,
    EVENTUALLY_REPLICATED,
    EVENTUALLY_RUNS,
    EVENTUALLY_UNFENCED,
    LOG_MATCHING,
    NO_COMMITTED_RECORD_LOST,
)
from simulator.workload import checksum

if TYPE_CHECKING:
    from simulator.cluster import VirtualCluster

_LOOK_NS = 10 * SECOND
_QUIET_NS = 150 * SECOND
"""How long before the end clients stop."""

_FORWARDED_NS = 60 * SECOND
_MOVE_NS = 60 * SECOND
"""The time in which brokers learn of a leader that moved just before the end: they read the lake every few seconds."""
"""How long a broker forwards a request at most."""

_ANSWERED_NS = 120 * SECOND
"""How long a node has for its answer to a request, longer than any of them waits."""

_BEHIND = 5
"""How many records brokers may be apart, as they look at the lake at different times."""

Problem = tuple[str, str]
"""What is wrong, and the property of the specification that is broken by it, "" for another."""


class Peace:
    """Undoes all faults of a cluster, and waits until it is whole."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster

    def make(self, until_ns: int) -> None:
        """Raises InvariantError where the cluster is not whole by a time, or has lost something."""
        cluster, scheduler = self._cluster, self._cluster.scheduler
        began_ns = scheduler.now_ns
        cluster.note("peace")
        self._heal()
        problem: Problem | None = None
        while scheduler.now_ns < until_ns:
            if scheduler.now_ns >= until_ns - _QUIET_NS:
                cluster.is_over = True  # under load there are always records that not all replicas know to be committed
            scheduler.run(scheduler.now_ns + _LOOK_NS)
            for node in cluster.nodes:  # one that was asked to leave may do so only now
                node.start_if_down()
            problem = self._problem()
            if problem is None:
                break
        cluster.is_over = True
        scheduler.run(until_ns)
        problem = self._problem()
        while problem is not None and scheduler.now_ns < until_ns + _MOVE_NS:
            scheduler.run(scheduler.now_ns + _LOOK_NS)
            problem = self._problem()
        if problem is not None:
            what, of = problem
            violated(f"{what}; no fault is left for {(until_ns - began_ns) / SECOND:.0f} s", of)
        self._check_topics()
        self._check_records()
        self._check_configs()

    def _heal(self) -> None:
        """Undo what faults did; those that are under way undo their own."""
        cluster = self._cluster
        cluster.stop_faults()
        for node in cluster.brokers.values():
            if not node.is_sound:
                node.kill()
            node.heal()
        for each in cluster.nodes:
            each.resume()
            if each.process is not None:
                each.process.extra["lake_gone_until"] = each.process.extra["lake_lag"] = 0
            each.start_if_down()

    def _problem(self) -> Problem | None:
        """Why the cluster is not whole, None if it is: what the rest waits for comes first."""
        return self._problem_of_nodes() or self._problem_of_partitions() or self._problem_of_requests()

    def _problem_of_nodes(self) -> Problem | None:
        """One controller is active, each broker is in service, and they have the same metadata."""
        cluster = self._cluster
        newest = cluster.replicas.newest
        active = [node.name for node in cluster.controllers.values() if node.is_active]
        if len(active) != 1:
            return f"active controllers: {active}", ""
        leaving = [node.name for node in cluster.nodes if node.is_leaving]
        if leaving:
            return f"asked to end, and there: {leaving}", ""
        for id_, node in cluster.brokers.items():
            registration = newest.cluster.brokers.get(id_)
            if registration is None or not node.is_registered(newest):
                return f"{node.name} is not registered: {node.ends[-1:]}, {registration}", EVENTUALLY_RUNS
            if registration.fenced:
                return f"{node.name} is fenced: {registration}", EVENTUALLY_UNFENCED
            if not node.is_running:
                return f"{node.name} is in service, and does not know it", EVENTUALLY_RUNS
        behind = {
            node.name: offset
            for node in cluster.brokers.values()
            if (offset := node.image.provenance.offset) < newest.provenance.offset - _BEHIND
        }
        if behind:
            return f"of {newest.provenance.offset} metadata records, {behind} are known", EVENTUALLY_METADATA_CONVERGES
        return None

    def _problem_of_partitions(self) -> Problem | None:
        """No change is under way, and each replica is in sync, but for a partition that waits for removed replicas."""
        for topic in self._cluster.replicas.newest.topics.topics_by_id().values():
            for number, state in topic.partitions.items():
                if waits_for_removed(state):
                    continue
                name = TopicPartition(topic.name, number)
                problem = self._problem_of_leader(name, state)
                if problem is not None:
                    return problem
                is_moving = bool(state.adding_replicas) and not set(state.adding_replicas) & set(
                    state.removing_replicas
                )
                if is_moving:
                    return f"{name} is {state}", EVENTUALLY_REASSIGNMENT_COMPLETES
                if state.leader == NO_LEADER or set(state.isr) != set(state.replicas):
                    return f"{name} is {state}", EVENTUALLY_REPLICATED
                ends = self._ends(name, state.isr)
                if len(set(ends.values())) > 1 or any(end != mark for end, mark in ends.values()):
                    return f"{name} ends at and is committed to {ends}", EVENTUALLY_REPLICATED
        return None

    def _problem_of_leader(self, name: TopicPartition, state: PartitionRegistration) -> Problem | None:
        """A leader has the controller's state of its partition, and no proposal that waits for an answer."""
        node = self._cluster.brokers.get(state.leader)
        partition = None if node is None else node.partition(name)
        if node is None or partition is None:
            return None  # it has no leader, or its directory has failed
        known = partition.leader_epoch, partition.partition_epoch, partition.in_sync.state
        if known[2].is_inflight:
            what = f"{node.name} waits for an answer to {known[2].sent} of {name}"
            return what, ALTER_PARTITION_REACHED_OR_ZERO
        if (*known[:2], known[2].isr) != (state.leader_epoch, state.partition_epoch, {*state.isr}):
            return f"{node.name} leads {name} by {known}, which is {state}", EVENTUALLY_METADATA_CONVERGES
        return None

    def _problem_of_requests(self) -> Problem | None:
        """What was asked is answered, and what producers have sent is accepted or rejected."""
        cluster = self._cluster
        before_ns = cluster.scheduler.now_ns - _ANSWERED_NS
        for listener in cluster.network.listeners.values():
            for since_ns, api in listener.unanswered.values():
                if since_ns < before_ns:
                    what = f"{listener.process.name} has not answered {api} of {since_ns / SECOND:.3f} s"
                    return what, EVENTUALLY_ANSWERED if api == "produce" else ""
        if cluster.is_over and cluster.history.in_flight:
            what = f"producers wait for an answer of {cluster.history.in_flight}"
            return what, EVENTUALLY_ANSWERED
        return None

    def _ends(self, name: TopicPartition, isr: tuple[int, ...]) -> dict[int, tuple[int, int]]:
        logs = {id_: self._cluster.brokers[id_].log(name) for id_ in isr}
        return {id_: (-1, -2) if log is None else (log.log_end_offset, log.high_watermark) for id_, log in logs.items()}

    def _check_topics(self) -> None:
        """All topics are there that were created or hold something, but for those whose deletion was asked for."""
        history, topics = self._cluster.history, self._cluster.replicas.newest.topics
        for known, of in ((history.acknowledged, NO_COMMITTED_RECORD_LOST), (history.read, CONSISTENT_READ)):
            for topic_id, partition, offset in known:  # of topics that nobody deletes
                if topics.get_partition(topic_id, partition) is None:
                    violated(f"partition {partition} of {topic_id} is gone, and with it what was at {offset}", of)
        for name, topic_id in history.created.items():
            if name not in history.deleted and topics.get_topic_by_id(topic_id) is None:
                violated(f"{name} was created with the id {topic_id}, and is gone")

    def _check_records(self) -> None:
        """All replicas hold the same bytes, and in them all that was acknowledged or read, where it was."""
        history = self._cluster.history
        for topic in self._cluster.replicas.newest.topics.topics_by_id().values():
            for number, state in topic.partitions.items():
                name = TopicPartition(topic.name, number)
                if waits_for_removed(state):
                    continue  # nobody leads who could say what is there
                if topic.name in COMPACTED:
                    self._check_compacted(name, topic.id, state.isr)
                    continue
                held = self._held(name, state.isr)
                for of, what, known, sum_of in (
                    (NO_COMMITTED_RECORD_LOST, "acknowledged", history.acknowledged, checksum),
                    (CONSISTENT_READ, "read", history.read, crc32),
                ):
                    for (id_, partition, offset), wanted in known.items():
                        is_here = (id_, partition) == (topic.id, number)
                        if is_here and (offset not in held or sum_of(held[offset]) != wanted):
                            violated(f"{name}: {offset} was {what}, and is gone or another batch now", of)

    def _held(self, name: TopicPartition, isr: tuple[int, ...]) -> dict[int, bytes]:
        """The batches that all replicas hold, without a gap from offset 0 on."""
        found = []
        for id_ in isr:
            log = self._cluster.brokers[id_].log(name)
            batches = held_batches(log)
            bases, ends = [one.base_offset for one in batches], [one.last_offset + 1 for one in batches]
            if [*bases, log.log_end_offset] != [0, *ends]:
                violated(f"{name}: broker-{id_} holds not all of 0 to {log.log_end_offset}: {bases}")
            found.append({one.base_offset: bytes(one.data) for one in batches})
        if any(other != found[0] for other in found):
            violated(f"replicas of {name} hold different records", LOG_MATCHING)
        return found[0]

    def _check_compacted(self, name: TopicPartition, topic_id: Uuid, isr: tuple[int, ...]) -> None:
        """Each replica holds what was committed at its offsets, but for what a cleaner may have removed."""
        committed = self._cluster.replicas.committed.get((topic_id, name.partition), Committed())
        for id_ in isr:
            log = self._cluster.brokers[id_].log(name)
            batches = held_batches(log)
            ends = [0, *(one.last_offset + 1 for one in batches)]
            bases = [*(one.base_offset for one in batches), log.log_end_offset]
            if any(base < end for base, end in zip(bases, ends, strict=True)) or bases[-1] != ends[-1]:
                violated(f"{name}: broker-{id_} ends at {log.log_end_offset}, with batches at {bases}")
            if problem := committed.compacted.problem(records_of(batches), 0, committed.batches.end):
                violated(f"{name}: broker-{id_} {problem}", NO_COMMITTED_RECORD_LOST)

    def _check_configs(self) -> None:
        """A config whose change was acknowledged is set, unless a late copy of an earlier request may have come."""
        configs = self._cluster.replicas.newest.configs
        for topic, (wanted, acknowledged_ns) in self._cluster.admin.retention.items():
            if acknowledged_ns < self._cluster.network.late_ns + _FORWARDED_NS:
                continue
            found = configs.config_map(ConfigResource(TOPIC_RESOURCE, topic)).get("retention.ms")
            if found != str(wanted):
                violated(f"retention.ms of {topic} was set to {wanted}, and is {found}")


def waits_for_removed(state: PartitionRegistration) -> bool:
    """Whether a partition has no leader, and only removed replicas in its ELR: `known_bugs.ELR_KEEPS_REMOVED_REPLICA`.

    Nobody can be elected then, and Kafka elects the last leader only where the ELR is empty: an unclean election by an
    operator is the way out.
    """
    return state.leader == NO_LEADER and bool(state.elr) and not {*state.elr} & {*state.replicas}
