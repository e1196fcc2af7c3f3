"""Brokers of the simulation whose logs lie on disks that lose power, fail and fill up."""

from __future__ import annotations

import errno
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition, TopicPartition
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.kafka_files.file_names import META_PROPERTIES
from kraftlake.kafka_files.node.meta_properties import meta_properties
from kraftlake.publisher.broker_metadata_publisher import is_stray_replica
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import KafkaStorageError
from kraftlake.replica_manager.logs.disk.disk_log_manager import open_log_manager
from kraftlake.replica_manager.logs.disk.log_segment import batches_in
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.partition.partition import OfflinePartition
from kraftlake.runtime.errors import CorruptDataError
from simulator.faulty_files import READ, SYNC, WRITE, Fault, FaultyFiles
from tests.replica_manager.brokers import FOO
from tests.replica_manager.cluster import Cluster, Node

if TYPE_CHECKING:
    from tests.simulation.replication import Simulation

CLUSTER_ID = "simulated"
FAULTS = ((errno.EIO, READ), (errno.EIO, WRITE), (errno.EIO, SYNC), (errno.EROFS, WRITE))


class DiskNode(Node):
    """A broker that opens its logs at each start."""

    def __init__(self, cluster: Cluster, id_: int, simulation: Simulation) -> None:
        super().__init__(cluster, id_)
        self.simulation = simulation
        self.files = FaultyFiles(Random(simulation.chance.random()))
        self.is_clean = True
        """Whether the broker was shut down in order."""
        self.broken: Collection[str] = ()
        """The directories that had failed when the broker ended."""
        self._held: dict[str, tuple[bytes, list[LogBatch]]] = {}
        for name, directory_id in self.logs.directories.items():
            self.files.make_folder(name)
            properties = meta_properties(cluster_id=CLUSTER_ID, node_id=id_, directory_id=directory_id)
            self.files.write_whole(f"{name}/{META_PROPERTIES}", properties)
        self.files.sync_folder("")

    def start(self) -> None:
        is_stray = partial(is_stray_replica, self.id, self.cluster.image.topics)
        self._open_logs()
        try:
            self.logs.startup([], is_stray)
        except CorruptDataError as error:
            self._remove_copy(str(error))
            self.logs.startup([], is_stray)
        self.broken = ()
        super().start()
        self.is_clean = False

    def _open_logs(self) -> None:
        self.logs = open_log_manager(
            ["d", "e"], cluster_id=CLUSTER_ID, node_id=self.id, clock=self.clock,
            defaults=attrs.evolve(
                self.cluster.log_config, segment_bytes=300, index_interval_bytes=100, flush_ms=1_000,
                file_delete_delay_ms=1_000,
            ),
            topic_configs=lambda _: {}, files=self.files, random=Random(self.files.life), on_failure=self._on_failure,
        )  # fmt: skip

    def catch_up(self) -> None:
        self.logs.recover_abandoned_future_logs(self.id, self.cluster.image.topics)
        super().catch_up()

    def _remove_copy(self, error: str) -> None:
        """Do what the message asks for: the directory failed while a copy took its replica's place."""
        found = re.match("(./.*) and (./.*) are logs of one replica: ", error)
        assert found is not None, error
        (folder,) = [folder for folder in found.groups() if folder[0] in self.broken]
        self.files.delete_folder(folder)
        self.files.restart()
        self._open_logs()

    def _on_failure(self, directory: str, _: OSError) -> None:
        """A thread of the broker handles it, and the controller hears of it later."""
        self.incarnation.schedule(0, lambda: self.manager.handle_log_dir_failure(directory))

    def handle_failure(self, directory_id) -> None:
        self.incarnation.schedule(0, self._leave_isrs)

    def _leave_isrs(self) -> None:
        """The controller removes replicas in failed directories from ISRs."""
        for number, _ in self.cluster.partitions():
            if isinstance(self.manager.hosted(TopicPartition("foo", number)), OfflinePartition):
                leave_isr(self.cluster, self.id, number)

    def log(self, name: TopicPartition):
        """The log, None where its directory has failed."""
        log = super().log(name)
        return None if log is None or log.directory in self.logs.offline else log

    def batches(self, log) -> list[LogBatch]:
        """The batches as they lie in the files, without a call of the broker."""
        paths = [segment.path(".log") for segment in log.segments]
        content = b"".join(
            self.files.content(path)[: segment.size] for path, segment in zip(paths, log.segments, strict=True)
        )
        known = self._held.get(log.folder)
        if known is None or known[0] != content:
            known = self._held[log.folder] = (content, [one for _, one in batches_in(_Content(content))])
        return known[1]

    def stop(self, *, power: bool, clean: bool) -> None:
        """End the process, in order or not, or the power."""
        if clean:
            self.logs.shutdown(self.epoch)
            self.is_clean = not self.logs.offline
        if power:
            self.files.power_cut()
        else:
            self.files.restart()
        self.broken = self.broken or self.logs.offline.keys()
        self.files.faults.clear()
        self.files.space.clear()


@attrs.frozen
class _Content:
    """Bytes as a `LogFile` that is read."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, position: int, size: int) -> bytes:
        return self.data[position : position + size]


def leave_isr(cluster: Cluster, id_: int, number: int) -> None:
    """The controller removes a replica from an ISR, unless it is the last one, and lets another lead."""
    state = dict(cluster.partitions())[number]
    rest = tuple(other for other in state.isr if other != id_)
    fields = {"isr": rest} if rest and len(rest) < len(state.isr) else {}
    if state.leader == id_:
        alive = [other for other in rest if not cluster.image.cluster.brokers[other].fenced]
        fields["leader"] = alive[0] if alive else NO_LEADER
    if fields:
        cluster.write(r.PartitionChangeRecord(partition_id=number, topic_id=FOO, **fields))


def write_directories(cluster: Cluster, id_: int, directories: Mapping[TopicIdPartition, Uuid]) -> None:
    """The controller writes down in which log directories a broker's replicas lie."""
    changes = []
    for replica, directory in directories.items():
        number = replica.topic_partition.partition
        state = cluster.image.topics.get_partition(replica.topic_id, number)
        if state is not None and id_ in state.replicas and state.directory(id_) != directory:
            known = zip(state.replicas, state.directories, strict=True)
            changes.append(
                r.PartitionChangeRecord(
                    partition_id=number, topic_id=replica.topic_id,
                    directories=tuple(directory if other == id_ else was for other, was in known),
                )
            )  # fmt: skip
    if changes:
        cluster.write(*changes)


def lossy_node(simulation: Simulation) -> DiskNode | None:
    """A broker that runs and may lose what is not durable: there is another replica in each ISR."""
    up = [node for node in simulation.cluster.nodes.values() if node.up and not node.files.faults]
    node = simulation.chance.choice(up) if len(up) > 1 else None
    if node is None or any(state.isr == (node.id,) for _, state in simulation.cluster.partitions()):
        return None
    return node


def tend(simulation: Simulation) -> None:
    """Flush, checkpoint and clean as a broker's scheduler does."""
    for node in simulation._awake():
        if simulation.chance.random() < 0.5:
            node.logs.flush_logs()
            node.logs.clean_logs()
            node.logs.checkpoint()
            node.manager.checkpoint_high_watermarks()


def lose_power(simulation: Simulation) -> None:
    """A broker's machine stops, and the controller hears of it before anything else happens."""
    node = lossy_node(simulation)
    if node is not None:
        simulation.end(node, power=True)
        simulation.notice(node)
        register_again(simulation, node)


def fail_disk(simulation: Simulation) -> None:
    """A directory of a broker fails, or has little space left.

    A failed fsync loses what is not durable, so it comes at once, and the controller hears of it.
    """
    node = lossy_node(simulation)
    if node is None:
        return
    directory = simulation.chance.choice("de")
    if simulation.chance.random() < 0.5:
        node.files.space[directory] = simulation.chance.randrange(500)
        return
    error, kind = simulation.chance.choice(FAULTS)
    node.files.faults.append(Fault(directory, error, frozenset([kind])))
    if kind == SYNC:
        for name, log in node.logs.logs().items():
            if log.directory == directory:
                with suppress(KafkaStorageError):
                    log.make_durable()
                if name.topic == "foo":
                    leave_isr(simulation.cluster, node.id, name.partition)


def register_again(simulation: Simulation, node: DiskNode) -> None:
    """The controller removes a broker that was not shut down in order from all ISRs."""
    if not node.is_clean:
        for number, _ in simulation.cluster.partitions():
            leave_isr(simulation.cluster, node.id, number)
