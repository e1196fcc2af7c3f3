"""The end of a history: faults stop, the cluster becomes whole within a bound, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.uuid import Uuid
from simulator.compacted_logs import COMPACTED, records_of
from simulator.mirrors import Committed, held_batches
from simulator.replica_watch import InvariantError
from simulator.scheduler import SECOND
from simulator.specification import (
    CONSISTENT_READ,
    EVENTUALLY_METADATA_CONVERGES,
    EVENTUALLY_REASSIGNMENT_COMPLETES,
    EVENTUALLY_REPLICATED,
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
"""How long a broker forwards a request at most."""


class Peace:
    """Undoes all faults of a cluster, and waits until it is whole."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster

    def make(self, until_ns: int) -> None:
        """Raises InvariantError where the cluster is not whole by a time, or has lost something."""
        cluster, scheduler = self._cluster, self._cluster.scheduler
        began_ns = scheduler.now_ns
        cluster.tell("peace")
        self._heal()
        problem = "not looked at"
        while scheduler.now_ns < until_ns:
            if scheduler.now_ns >= until_ns - _QUIET_NS:
                cluster.is_over = True  # under load there are always records that not all replicas know to be committed
            scheduler.run(scheduler.now_ns + _LOOK_NS)
            for node in cluster.nodes:  # one that was asked to leave may do so only now
                node.start_if_down()
            problem = self._problem()
            if not problem:
                break
        if problem:
            raise InvariantError(f"not whole within {(until_ns - began_ns) / SECOND:.0f} s of peace: {problem}")
        cluster.is_over = True
        scheduler.run(until_ns)
        problem = self._problem()
        if problem:
            raise InvariantError(f"not whole at the end: {problem}")
        self._check_topics()
        self._check_records()
        self._check_configs()

    def _heal(self) -> None:
        """Undo what faults did; those that are under way undo their own."""
        cluster = self._cluster
        cluster.stop_faults()
        for node in cluster.brokers.values():
            if node.files.faults or node.files.space:
                node.kill()
            node.heal()
        for each in cluster.nodes:
            each.resume()
            if each.process is not None:
                each.process.extra["lake_gone_until"] = each.process.extra["lake_lag"] = 0
            each.start_if_down()

    def _problem(self) -> str:
        """Why the cluster is not whole, "" if it is."""
        cluster = self._cluster
        image = cluster.replicas.newest
        active = [node.name for node in cluster.controllers.values() if node.is_active]
        if len(active) != 1:
            return f"active controllers: {active}"
        leaving = [node.name for node in cluster.nodes if node.is_leaving]
        if leaving:
            return f"asked to end, and there: {leaving}"
        for id_, node in cluster.brokers.items():
            registration = image.cluster.brokers.get(id_)
            if registration is None or registration.fenced or not node.is_registered(image):
                return f"{EVENTUALLY_UNFENCED}: {node.name} is not in service: {node.ends[-1:]}, {registration}"
        for topic in image.topics.topics_by_id().values():
            for number, state in topic.partitions.items():
                name = f"{topic.name}-{number}"
                is_moving = bool(state.adding_replicas) and not set(state.adding_replicas) & set(
                    state.removing_replicas
                )
                if is_moving:
                    return f"{EVENTUALLY_REASSIGNMENT_COMPLETES}: {name} is {state}"
                if state.leader == NO_LEADER or set(state.isr) != set(state.replicas):
                    return f"{EVENTUALLY_REPLICATED}: {name} is {state}"
                ends = self._ends(topic.name, number, state.isr)
                if len(set(ends.values())) > 1 or any(end != mark for end, mark in ends.values()):
                    return f"{EVENTUALLY_REPLICATED}: {name} ends at and is committed to {ends}"
        offsets = {node.image.provenance.offset for node in cluster.brokers.values()}
        if max(offsets) - min(offsets) > 5:
            return f"{EVENTUALLY_METADATA_CONVERGES}: images are of {offsets}"
        return ""

    def _ends(self, topic: str, number: int, isr: tuple[int, ...]) -> dict[int, tuple[int, int]]:
        logs = {id_: self._cluster.brokers[id_].log(TopicPartition(topic, number)) for id_ in isr}
        return {id_: (-1, -2) if log is None else (log.log_end_offset, log.high_watermark) for id_, log in logs.items()}

    def _check_topics(self) -> None:
        """All topics are there that were created or hold something, but for those whose deletion was asked for."""
        history, topics = self._cluster.history, self._cluster.replicas.newest.topics
        for name, topic_id in history.created.items():
            if name not in history.deleted and topics.get_topic_by_id(topic_id) is None:
                raise InvariantError(f"{name} was created with the id {topic_id}, and is gone")
        for topic_id, partition, offset in (*history.acknowledged, *history.read):  # of topics that nobody deletes
            if topics.get_partition(topic_id, partition) is None:
                raise InvariantError(f"partition {partition} of {topic_id} is gone, and with it what was at {offset}")

    def _check_records(self) -> None:
        """All replicas hold the same bytes, and in them all that was acknowledged or read, where it was."""
        history = self._cluster.history
        for topic in self._cluster.replicas.newest.topics.topics_by_id().values():
            for number, state in topic.partitions.items():
                name = TopicPartition(topic.name, number)
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
                            raise InvariantError(f"{of}: {name}: {offset} was {what}, and is gone or another batch now")

    def _held(self, name: TopicPartition, isr: tuple[int, ...]) -> dict[int, bytes]:
        """The batches that all replicas hold, without a gap from offset 0 on."""
        found = []
        for id_ in isr:
            log = self._cluster.brokers[id_].log(name)
            batches = held_batches(log)
            bases, ends = [one.base_offset for one in batches], [one.last_offset + 1 for one in batches]
            if [*bases, log.log_end_offset] != [0, *ends]:
                raise InvariantError(f"{name}: broker-{id_} holds not all of 0 to {log.log_end_offset}: {bases}")
            found.append({one.base_offset: bytes(one.data) for one in batches})
        if any(other != found[0] for other in found):
            raise InvariantError(f"{LOG_MATCHING}: replicas of {name} hold different records")
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
                raise InvariantError(f"{name}: broker-{id_} ends at {log.log_end_offset}, with batches at {bases}")
            if problem := committed.compacted.problem(records_of(batches), 0, committed.batches.end):
                raise InvariantError(f"{NO_COMMITTED_RECORD_LOST}: {name}: broker-{id_} {problem}")

    def _check_configs(self) -> None:
        """What an administrator was told to be set is set, unless a late copy of an earlier request may have come."""
        configs = self._cluster.replicas.newest.configs
        for topic, (wanted, told_ns) in self._cluster.admin.retention.items():
            if told_ns < self._cluster.network.late_ns + _FORWARDED_NS:
                continue
            found = configs.config_map(ConfigResource(TOPIC_RESOURCE, topic)).get("retention.ms")
            if found != str(wanted):
                raise InvariantError(f"retention.ms of {topic} was set to {wanted}, and is {found}")
