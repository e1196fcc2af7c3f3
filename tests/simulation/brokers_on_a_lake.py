"""Brokers with all their threads over one lake, in one process: controller → log → loader → publisher → replicas.

What is left out is disk and wire: partition logs lie in memory, and brokers ask each other by method calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from kraftlake.controller.cluster.brokers import register_broker
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.controller.replication.alter_partition import IsrChange, alter_partition
from kraftlake.controller.replication.directories import assign_replicas_to_dirs
from kraftlake.delta.topics.local_replica_changes import TopicIdPartition, TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest, BrokerRegistrationRequest
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.broker_metadata_publisher import BrokerMetadataPublisher, BrokerParts
from kraftlake.publisher.dynamic_configs import ConfigType, DynamicConfigPublisher
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.records.metadata_records import BrokerEndpoint
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replica_manager.alter_partition_manager import AlterPartitionResponse, BatchingAlterPartitionManager
from kraftlake.replica_manager.assignments_manager import AssignmentsManager, AssignReplicasResponse
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.controller_channel import BrokerState, LeaderAndIsr
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.fetcher_thread import ReplicaFetcherThread
from kraftlake.replica_manager.fetch.leader_end_point import FetchRequest, FetchResponse, LeaderUnreachableError
from kraftlake.replica_manager.fetch.log_dir_fetcher import LogDirFetcher
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.expiration_reaper import ExpirationReaper
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.fetch_serving import serve_fetch
from kraftlake.replica_manager.requests.fetch_session_cache import FetchSessionCache
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.replica_manager.topic_config_handler import TopicConfigHandler
from kraftlake.runtime.clock import SystemClock
from kraftlake.runtime.event_queue import KafkaEventQueue
from kraftlake.runtime.scheduler import Scheduler
from kraftlake.server.broker.broker import CachedView
from tests.controller.controlled_cluster import ALL_FEATURES, CLUSTER_ID, incarnation
from tests.histories import uuid_of
from tests.replay.loader.test_metadata_loader import Faults
from tests.replica_manager.cluster import EndPoint
from tests.waiting import PATIENCE

LONG_LAG = 3_600_000
"""No pause of the machine takes a replica out of an ISR."""


class WaitingEndPoint(EndPoint):
    """A leader whose fetches wait for data until their timeout, or until close()."""

    answers: SimpleQueue[FetchResponse | None] | None = None

    def fetch(self, request: FetchRequest) -> FetchResponse:
        leader = self.cluster.nodes[self.broker_end_point.id]
        answers: SimpleQueue[FetchResponse | None] = SimpleQueue()
        self.answers = answers
        if not self.closed and leader.up:
            serve_fetch(leader.server, leader.sessions, request, answers.put)
            try:
                answer = answers.get(timeout=10 * request.params.max_wait_ms / 1000 + 1)
            except Empty:
                answer = None
            if answer is not None:
                return answer
        raise LeaderUnreachableError("no answer")

    def close(self) -> None:
        super().close()
        if self.answers is not None:
            self.answers.put(None)


class LakeBroker:
    """Broker `id`, which registers on construction and serves after `unfence`."""

    def __init__(self, cluster: LakeCluster, id_: int) -> None:
        self.cluster, self.id = cluster, id_
        clock, self.faults = SystemClock(), Faults()
        self.directories = {"d1": uuid_of(900 + 10 * id_), "d2": uuid_of(901 + 10 * id_)}
        self.cache = MetadataCache(id_)
        view = CachedView(self.cache)
        self.logs = MemoryLogManager(self.directories, topic_configs=view.topic_configs)
        self.queue = KafkaEventQueue(clock, f"broker-{id_}")
        self.scheduler = Scheduler(self.queue)
        self.delayed = DelayedRequests(clock)
        ExpirationReaper(self.delayed, self.queue)
        self.epoch = -1
        self.up = True
        context = BrokerContext(
            broker_id=id_, config=cluster.config, clock=clock, log_manager=self.logs, metadata=view,
            alter_partition_manager=BatchingAlterPartitionManager(
                id_, lambda: self.epoch, cluster, self.scheduler.after
            ),
            directory_events=AssignmentsManager(
                id_, lambda: self.epoch, lambda: self.cache.image, cluster,
                schedule=self.scheduler.after, on_failure=lambda _: None,
            ),
            delayed_operations=self.delayed, broker_epoch=lambda: self.epoch,
        )  # fmt: skip
        self.manager = ReplicaManager(
            context, fetchers=self._fetcher, log_dir_fetchers=self._log_dir_fetcher, scheduler=self.scheduler
        )
        self.server = RequestServer(self.manager, self.delayed)
        self.sessions = FetchManager(FetchSessionCache(clock, cluster.config.max_incremental_fetch_session_cache_slots))
        self.images: SimpleQueue[MetadataImage] = SimpleQueue()
        publisher = BrokerMetadataPublisher(
            id_,
            self.cache,
            BrokerParts(
                log_manager=self.logs,
                replica_manager=self.manager,
                apply_delta=partial(apply_delta, self.manager),
                followers=(
                    DynamicConfigPublisher(id_, {ConfigType.TOPIC: TopicConfigHandler(id_, self.logs)}, self.faults),
                ),
            ),
            fault_handler=self.faults,
        )
        self.epoch = self._register()
        feed = LakeFeed(MetadataLog.open(cluster.lake), clock, self.faults)
        self.loader = MetadataLoader(clock=clock, fault_handler=self.faults, high_watermark=lambda: feed.end_at_start)
        self.loader.install_publishers([publisher, self])
        feed.start(self.loader)
        self.await_image(lambda image: id_ in image.cluster.brokers)

    name = "test"

    def on_metadata_update(self, delta: Any, new_image: MetadataImage, manifest: Any) -> None:
        """The last publisher: all others have the image before."""
        self.images.put(new_image)

    def on_controller_change(self, leader_and_epoch: Any) -> None: ...

    def close(self) -> None: ...

    def await_image(self, holds: Callable[[MetadataImage], bool]) -> MetadataImage:
        """The first image for which it holds, once the broker has acted on it; no-op records bring two a second."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            image = self.images.get(timeout=PATIENCE)
            if holds(image):
                return image
        raise AssertionError(f"broker {self.id} waited {PATIENCE} s in vain: {image}")

    def _register(self) -> int:
        request = BrokerRegistrationRequest(
            broker_id=self.id, cluster_id=CLUSTER_ID, incarnation_id=incarnation(self.id), features=ALL_FEATURES,
            log_dirs=tuple(self.directories.values()),
            listeners=(BrokerEndpoint(name="PLAINTEXT", host="h", port=9000 + self.id, security_protocol=0),),
        )  # fmt: skip
        done = self.cluster.controller.submit(lambda state: register_broker(state, request))
        return done.result(PATIENCE).broker_epoch

    def heartbeat(self, *, want_fence: bool = False) -> None:
        """Send a heartbeat, with `want_fence` to stop serving."""
        beat = BrokerHeartbeatRequest(
            broker_id=self.id, broker_epoch=self.epoch, current_metadata_offset=self.epoch, want_fence=want_fence
        )
        assert self.cluster.controller.heartbeat(beat).result(PATIENCE).is_fenced == want_fence

    def _fetcher(self, fetcher_id: int, leader: BrokerEndPoint) -> ReplicaFetcherThread:
        end_point = WaitingEndPoint(self.cluster, self, leader)  # type: ignore[arg-type]
        return self._thread(ReplicaFetcher(fetcher_id, end_point, self.manager))

    def _log_dir_fetcher(self, fetcher_id: int, here: BrokerEndPoint) -> ReplicaFetcherThread:
        return self._thread(LogDirFetcher(fetcher_id, here, self.manager))

    def _thread(self, fetcher: ReplicaFetcher) -> ReplicaFetcherThread:
        return ReplicaFetcherThread(
            fetcher, backoff_ms=self.cluster.config.replica_fetch_backoff_ms, fault_handler=self.faults
        )

    def roles(self) -> tuple[set[TopicPartition], set[TopicPartition]]:
        """The partitions that the broker leads and follows."""
        online = list(self.manager.online_partitions())
        leads = {partition.topic_partition for partition in online if partition.is_leader}
        return leads, {partition.topic_partition for partition in online} - leads

    def produce(self, name: TopicPartition, data: bytes) -> Any:
        """Append with acks=all, and wait for the answer."""
        answers: SimpleQueue[Any] = SimpleQueue()
        self.server.append_records({name: data}, required_acks=-1, timeout_ms=PATIENCE * 1000, on_answer=answers.put)
        return answers.get(timeout=PATIENCE)[name]

    def stop(self) -> None:
        """End all threads."""
        if self.up:
            self.up = False
            self.loader.close()
            self.manager.shutdown()
            self.scheduler.shutdown()


class LakeCluster:
    """Brokers on the lake of a controller, and their channel to it."""

    def __init__(self, lake: Path, controller: QuorumController, replica_lag_time_max_ms: int = LONG_LAG) -> None:
        self.lake, self.controller = lake, controller
        self.config = ReplicaManagerConfig(
            replica_fetch_backoff_ms=20,
            replica_fetch_wait_max_ms=100,
            replica_lag_time_max_ms=replica_lag_time_max_ms,
            replica_high_watermark_checkpoint_interval_ms=20,
        )
        self.nodes: dict[int, LakeBroker] = {}

    def start(self, *ids: int) -> None:
        """Start brokers, and let them serve."""
        for id_ in ids:
            self.nodes[id_] = LakeBroker(self, id_)
        for id_ in ids:
            self.nodes[id_].heartbeat()
            self.nodes[id_].await_image(lambda image, id_=id_: not image.cluster.brokers[id_].fenced)  # type: ignore[misc]

    def stop(self) -> None:
        """Stop all brokers."""
        for node in self.nodes.values():
            node.stop()

    def reaches(self, _one: int, other: int) -> bool:
        return self.nodes[other].up

    def alter_partition(self, request: Any, on_answer: Callable[[AlterPartitionResponse], None]) -> None:
        """Handle a leader's proposals (AlterPartition)."""
        changes = [
            IsrChange(
                topic_id=name.topic_id, partition_id=name.topic_partition.partition, leader_epoch=asked.leader_epoch,
                partition_epoch=asked.partition_epoch, new_isr=asked.isr,
                leader_recovery_state=int(asked.leader_recovery_state),
            )
            for name, asked in request.partitions.items()
        ]  # fmt: skip
        names = list(request.partitions)

        def answered(done: Future[Any]) -> None:
            if done.exception() is not None:
                on_answer(AlterPartitionResponse(error=ErrorCode.NETWORK_EXCEPTION))
                return
            on_answer(
                AlterPartitionResponse(
                    partitions={
                        name: ErrorCode(answer.error) if answer.partition is None else _leader_and_isr(answer.partition)
                        for name, answer in zip(names, done.result(), strict=True)
                    }
                )
            )

        self.controller.submit(
            lambda state: alter_partition(state, request.broker_id, request.broker_epoch, changes)
        ).add_done_callback(answered)

    def assign_replicas_to_dirs(self, request: Any, on_answer: Callable[[AssignReplicasResponse], None]) -> None:
        """Handle the directories of replicas (AssignReplicasToDirs)."""
        by_directory: dict[Any, list[Any]] = {}
        names: dict[Any, TopicIdPartition] = {}
        for name, directory in request.directories.items():
            place = (name.topic_id, name.topic_partition.partition)
            by_directory.setdefault(directory, []).append(place)
            names[directory, place] = name

        def answered(done: Future[Any]) -> None:
            if done.exception() is not None:
                on_answer(AssignReplicasResponse(error=ErrorCode.NETWORK_EXCEPTION))
                return
            results = {names[key]: ErrorCode(error) for key, error in done.result().items()}
            on_answer(AssignReplicasResponse(results=results))

        self.controller.submit(
            lambda state: assign_replicas_to_dirs(state, request.broker_id, request.broker_epoch, by_directory)
        ).add_done_callback(answered)


def _leader_and_isr(partition: Any) -> LeaderAndIsr:
    return LeaderAndIsr(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=tuple(BrokerState(id_, -1) for id_ in partition.isr),
        partition_epoch=partition.partition_epoch,
    )
