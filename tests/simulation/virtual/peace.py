"""The end of a history: faults stop, the cluster becomes whole within a bound, and nothing is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.image.topics.partition_registration import NO_LEADER
from tests.simulation.virtual.replica_watch import InvariantError, held_batches
from tests.simulation.virtual.scheduler import SECOND

if TYPE_CHECKING:
    from tests.simulation.virtual.cluster import VirtualCluster

_LOOK_NS = 10 * SECOND


class Peace:
    """Undoes all faults of a cluster, and waits until it is whole."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self._cluster = cluster

    def make(self, until_ns: int) -> None:
        """Raises InvariantError where the cluster is not whole by a time, or has lost something."""
        cluster, scheduler = self._cluster, self._cluster.scheduler
        cluster.tell("peace")
        self._heal()
        problem = "not looked at"
        while scheduler.now_ns < until_ns:
            scheduler.run(scheduler.now_ns + _LOOK_NS)
            problem = self._problem()
            if not problem:
                break
        if problem:
            raise InvariantError(f"not whole within {(until_ns - scheduler.now_ns) / SECOND:.0f} s of peace: {problem}")
        cluster.is_over = True
        scheduler.run(until_ns)
        problem = self._problem()
        if problem:
            raise InvariantError(f"not whole at the end: {problem}")
        self._check_records()

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
        for id_, node in cluster.brokers.items():
            registration = image.cluster.brokers.get(id_)
            if registration is None or registration.fenced or not node.is_registered(image):
                return f"{node.name} is not in service: {node.ends[-1:]}, {registration}"
        for topic in image.topics.topics_by_id().values():
            for number, state in topic.partitions.items():
                name = f"{topic.name}-{number}"
                if state.leader == NO_LEADER or set(state.isr) != set(state.replicas) or state.adding_replicas:
                    return f"{name} is {state}"
                ends = self._ends(topic.name, number, state.isr)
                if len(set(ends.values())) > 1 or any(end != mark for end, mark in ends.values()):
                    return f"{name} ends at and is committed to {ends}"
        offsets = {node.image.provenance.offset for node in cluster.brokers.values()}
        if max(offsets) - min(offsets) > 5:
            return f"images are of {offsets}"
        return ""

    def _ends(self, topic: str, number: int, isr: tuple[int, ...]) -> dict[int, tuple[int, int]]:
        from kraftlake.delta import TopicPartition

        logs = {id_: self._cluster.brokers[id_].log(TopicPartition(topic, number)) for id_ in isr}
        return {
            id_: (-1, -2) if log is None else (log.log_end_offset, log.high_watermark) for id_, log in logs.items()
        }

    def _check_records(self) -> None:
        """All replicas hold the same bytes, and in them all that was acknowledged or read, where it was."""
        from kraftlake.delta import TopicPartition
        from tests.simulation.virtual.workload import checksum
        from zlib import crc32

        cluster, image = self._cluster, self._cluster.replicas.newest
        for topic in image.topics.topics_by_id().values():
            for number, state in topic.partitions.items():
                held = {}
                for id_ in state.isr:
                    log = cluster.brokers[id_].log(TopicPartition(topic.name, number))
                    start = log.log_start_offset
                    held[id_] = {one.base_offset: bytes(one.data) for one in held_batches(log)}
                starts = max(min(found, default=0) for found in held.values())
                first, *others = ({at: data for at, data in found.items() if at >= starts} for found in held.values())
                if any(other != first for other in others):
                    raise InvariantError(f"replicas of {topic.name}-{number} hold different records")
                for (id_, partition, offset), known in cluster.history.acknowledged.items():
                    if (id_, partition) == (topic.id, number) and offset >= starts:
                        if offset not in first or checksum(first[offset]) != known:
                            raise InvariantError(f"{topic.name}-{number}: {offset} was acknowledged and is gone")
                for (id_, partition, offset), known in cluster.history.read.items():
                    if (id_, partition) == (topic.id, number) and offset >= starts:
                        if offset not in first or crc32(first[offset]) != known:
                            raise InvariantError(f"{topic.name}-{number}: {offset} was read and is another batch now")
