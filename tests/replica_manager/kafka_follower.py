"""Broker 7 of ours in the cluster of a real node: observer, lifecycle, channels, replica manager, fetchers.

It serves nobody. Clients take any broker for the one to ask, so the address that it advertises is forwarded to the
node. Its logs lie in memory.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.endpoint import feature_levels_of
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.protocol.address import Address, parse_addresses
from kraftlake.protocol.broker_requests import BrokerRegistrationRequest
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replay.live.open_quorum import decoded
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replica_manager.alter_partition_manager import BatchingAlterPartitionManager
from kraftlake.replica_manager.assignments_manager import AssignmentsManager
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.fetcher_thread import ReplicaFetcherThread
from kraftlake.replica_manager.fetch.remote_end_point import RemoteLeaderEndPoint
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.lifecycle.broker_lifecycle import BrokerLifecycle, LifecycleConfig
from kraftlake.replica_manager.lifecycle.broker_lifecycle_manager import BrokerLifecycleManager
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.node_to_controller_channel import NodeToControllerChannel
from kraftlake.replica_manager.replay.replayed_broker import StillFetcher
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.event_queue import EventQueue, KafkaEventQueue
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from kraftlake.runtime.scheduler import Scheduler
from tests.kafka_node import KafkaNode
from tests.protocol.fake_nodes import serving
from tests.replica_manager.brokers import Controller

ID = 7
PATIENCE = 180.0  # seconds until something is called stuck


@contextmanager
def forwarding(node: str) -> Iterator[Address]:
    """An address from which each connection is forwarded to a node's."""
    (to,) = parse_addresses(node)

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def talk(connection: socket.socket) -> None:
        with socket.create_connection((to.host, to.port)) as upstream:
            answers = threading.Thread(target=copy, args=[upstream, connection], daemon=True)
            answers.start()
            copy(connection, upstream)
            answers.join()

    with serving(talk) as address:
        yield address


class KafkaFollower:
    """The broker; `start` registers it, and `close` ends it without the controller's leave."""

    name = "kafka-follower"

    def __init__(self, node: KafkaNode, advertised: Address) -> None:
        clock, connect, addresses = SystemClock(), NodeConnector(timeout=30.0), parse_addresses(node.controller)
        self.faults = LoggingFaultHandler("kafka-follower")
        self.directories = {"d1": Uuid.random(), "d2": Uuid.random()}
        self.view = MetadataView()
        self.end_points: list[RemoteLeaderEndPoint] = []
        self._connect = connect
        self._quorum = QuorumObserver(addresses, connect=connect, cluster_id=node.cluster_id)
        self._log = ObservedLog(OffsetAndEpoch(offset=0, epoch=0))
        self._loader = MetadataLoader(
            clock=clock, fault_handler=self.faults, high_watermark=lambda: self._log.high_watermark,
            queue=EventQueue(clock, "loader"),
        )  # fmt: skip
        self._loader.install_publishers([self])
        self._observing = threading.Thread(target=self._observe, daemon=True)
        self._ended = threading.Event()
        registration = BrokerRegistrationRequest(
            broker_id=ID, cluster_id=node.cluster_id, incarnation_id=Uuid.random(), rack="east",
            listeners=(
                BrokerEndpoint(name="PLAINTEXT", host=advertised.host, port=advertised.port, security_protocol=0),
            ),
            features=feature_levels_of(SUPPORTED, BrokerFeature),
            log_dirs=tuple(self.directories.values()),
        )  # fmt: skip

        def channel(name: str, retry_timeout_ms: int | None = None) -> NodeToControllerChannel:
            return NodeToControllerChannel(
                name, addresses, connect, cluster_id=node.cluster_id, retry_timeout_ms=retry_timeout_ms
            )

        config = LifecycleConfig(broker_heartbeat_interval_ms=500)
        self.channels = [
            channel("heartbeat", config.channel_retry_timeout_ms), channel("alter-partition"),
            channel("directory-assignments"),
        ]  # fmt: skip
        lifecycle = BrokerLifecycle(registration, lambda: self._log.next_offset - 1, config)
        self.lifecycle = BrokerLifecycleManager(lifecycle, self.channels[0], clock)
        self._scheduler = Scheduler(KafkaEventQueue(clock, "scheduler"))
        epoch = lambda: self.lifecycle.broker_epoch  # noqa: E731
        self.assignments = AssignmentsManager(
            ID, epoch, lambda: self.view.image, self.channels[2], schedule=self._scheduler.after,
            on_failure=self.lifecycle.directory_failed,
        )  # fmt: skip
        context = BrokerContext(
            broker_id=ID, clock=clock, metadata=self.view, broker_epoch=epoch, directory_events=self.assignments,
            config=ReplicaManagerConfig(replica_fetch_backoff_ms=100, replica_lag_time_max_ms=3000),
            log_manager=MemoryLogManager(self.directories, topic_configs=self.view.topic_configs),
            alter_partition_manager=BatchingAlterPartitionManager(
                ID, epoch, self.channels[1], self._scheduler.after
            ),
            delayed_operations=Controller(),
        )  # fmt: skip
        self.manager = ReplicaManager(
            context, fetchers=self._fetcher, log_dir_fetchers=StillFetcher, scheduler=self._scheduler
        )
        self.manager.startup()

    def start(self) -> None:
        self._observing.start()
        self.lifecycle.start()

    def _fetcher(self, fetcher_id: int, leader: BrokerEndPoint) -> ReplicaFetcherThread:
        timeout_s = self.manager.context.config.replica_socket_timeout_ms / 1000
        self.end_points.append(RemoteLeaderEndPoint(leader, self._connect, replica_id=ID, timeout_s=timeout_s))
        fetcher = ReplicaFetcher(fetcher_id, self.end_points[-1], self.manager)
        return ReplicaFetcherThread(fetcher, backoff_ms=100, fault_handler=self.faults)

    def _observe(self) -> None:
        while not self._ended.is_set():
            try:
                batches = self._quorum.fetch(self._log, wait_ms=200)
            except NodeError:
                self._ended.wait(0.2)
                continue
            self._loader.load(decoded(batches))
            self._loader.queue.run_ready()

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: object) -> None:
        self.view.image = new_image
        if delta.topics_delta is not None:
            apply_delta(self.manager, delta.topics_delta, new_image)

    def on_controller_change(self, leader_and_epoch: object) -> None:
        pass

    def log_of(self, name: TopicPartition) -> bytes:
        """The bytes of a replica's log; none while it has no replica."""
        found = self.manager.online_partition(name)
        return b"" if found is None or found.log is None else b"".join(batch.data for batch in found.log.batches)

    def close(self) -> None:
        self._ended.set()
        if self._observing.is_alive():
            self._observing.join()
        self._quorum.close()
        self.manager.shutdown(checkpoint=False)
        self.lifecycle.close()
        for channel in self.channels:
            channel.close()
        self._scheduler.shutdown()
