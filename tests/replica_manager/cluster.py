"""Brokers with real replica managers and fetchers, a controller, and a network that a test or a simulator drives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicIdPartition, TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.alter_partition_manager import AlterPartitionResponse, BatchingAlterPartitionManager
from kraftlake.replica_manager.assignments_manager import AssignmentsManager, AssignReplicasResponse
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.controller_channel import LeaderAndIsr
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.errors import ReplicationError
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint
from kraftlake.replica_manager.fetch.leader_end_point import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    LeaderUnreachableError,
)
from kraftlake.replica_manager.fetch.log_dir_fetcher import LogDirFetcher
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.logs.log_batch import LogBatch
from kraftlake.replica_manager.logs.log_config import LogConfig
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.partition.leader import (
    append_records_to_leader,
    last_offset_for_leader_epoch,
    log_with_epoch,
)
from kraftlake.replica_manager.replay.replayed_broker import hosted_delta
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.requests.delayed_requests import DelayedRequests
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.fetch_serving import serve_fetch
from kraftlake.replica_manager.requests.fetch_session_cache import FetchSessionCache
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.runtime.clock import ManualClock
from simulator.data_batches import batch
from tests.histories import uuid_of
from tests.replica_manager.brokers import FOO

SESSION_SLOTS = 2
"""Fewer slots than followers, so that some followers have no session or lose it to another."""


def answer_fetch(leader: Node, request: FetchRequest) -> FetchResponse:
    """The answer of a leader that does not wait for data."""
    answers: list[FetchResponse] = []
    serve_fetch(
        leader.server,
        leader.sessions,
        attrs.evolve(request, params=attrs.evolve(request.params, max_wait_ms=0)),
        answers.append,
    )
    (answer,) = answers
    return answer


class EndPoint:
    """The leader end point of one broker for another."""

    is_truncation_on_fetch_supported = True

    def __init__(self, cluster: Cluster, node: Node, leader: BrokerEndPoint) -> None:
        self.cluster, self.node, self.broker_end_point = cluster, node, leader
        self.closed = False

    def _leader(self) -> ReplicaManager:
        if not self.cluster.reaches(self.node.id, self.broker_end_point.id):
            raise LeaderUnreachableError("no answer")
        return self.cluster.nodes[self.broker_end_point.id].manager

    def fetch(self, request):
        self._leader()
        return answer_fetch(self.cluster.nodes[self.broker_end_point.id], request)

    def epoch_end_offsets(self, epochs):
        manager, answers = self._leader(), {}
        for name, (current, epoch) in epochs.items():
            try:
                end = last_offset_for_leader_epoch(manager.partition_or_raise(name), current, epoch)
                answers[name] = EpochEndOffset(end=end)
            except ReplicationError as error:
                answers[name] = EpochEndOffset(error=error.code)
        return answers

    def earliest_offset(self, partition, current_leader_epoch):
        found = self._leader().partition_or_raise(partition)
        return log_with_epoch(found, current_leader_epoch, require_leader=True).log_start_offset

    def latest_offset(self, partition, current_leader_epoch):
        found = self._leader().partition_or_raise(partition)
        return log_with_epoch(found, current_leader_epoch, require_leader=True).log_end_offset

    def close(self):
        self.closed = True


class Incarnation:
    """One run of a broker, with its channel to the controller; answers after its end are dropped."""

    def __init__(self, node: Node) -> None:
        self.node, self.cluster = node, node.cluster
        node.incarnation = self

    def _if_alive(self, action: Callable[..., None]) -> Callable[..., None]:
        def act(*answer: Any) -> None:
            if self.node.up and self.node.incarnation is self:
                action(*answer)

        return act

    def schedule(self, delay_ms: float, action: Callable[[], None]) -> None:
        self.cluster.schedule(delay_ms, self._if_alive(action))

    def alter_partition(self, request, on_answer) -> None:
        def ask() -> AlterPartitionResponse:
            answers = {
                name: self.cluster.alter_partition(self.node.id, name.topic_partition.partition, proposed)
                for name, proposed in request.partitions.items()
            }
            return AlterPartitionResponse(partitions=answers)

        lost = AlterPartitionResponse(error=ErrorCode.NETWORK_EXCEPTION)
        self.cluster.carry(ask, lost, self._if_alive(on_answer))

    def assign_replicas_to_dirs(self, request, on_answer) -> None:
        def ask() -> AssignReplicasResponse:
            topics = self.cluster.image.topics
            results = {
                name: ErrorCode.UNKNOWN_TOPIC_ID if topics.get_topic_by_id(name.topic_id) is None else ErrorCode.NONE
                for name in request.directories
            }
            self.cluster.assign(self.node.id, request.directories)
            return AssignReplicasResponse(results=results)

        lost = AssignReplicasResponse(error=ErrorCode.NETWORK_EXCEPTION)
        self.cluster.carry(ask, lost, self._if_alive(on_answer))


class Node:
    """One broker, whose logs survive its restarts."""

    def __init__(self, cluster: Cluster, id_: int) -> None:
        self.cluster, self.id = cluster, id_
        self.logs = MemoryLogManager({"d": uuid_of(900 + id_), "e": uuid_of(950 + id_)}, cluster.log_config)
        self.clock = ManualClock(1_000_000)
        self.incarnation: Incarnation | None = None
        self.epoch = -1
        self.up = False
        self.heard = 0
        """The number of the cluster's deltas that the broker has applied."""

    def start(self) -> None:
        self.up, self.heard = True, 0
        self.view = MetadataView()
        way = Incarnation(self)
        self.isr_changes = BatchingAlterPartitionManager(self.id, lambda: self.epoch, way, way.schedule)
        self.assignments = AssignmentsManager(
            self.id, lambda: self.epoch, lambda: self.view.image, way,
            schedule=way.schedule, on_failure=lambda _: None,
        )  # fmt: skip
        self.delayed = DelayedRequests(self.clock)
        self.sessions = FetchManager(FetchSessionCache(self.clock, SESSION_SLOTS, self.cluster.new_session_id))
        context = BrokerContext(
            broker_id=self.id,
            config=self.cluster.config,
            clock=self.clock,
            log_manager=self.logs,
            metadata=self.view,
            alter_partition_manager=self,
            directory_events=self,
            delayed_operations=self.delayed,
            broker_epoch=lambda: self.epoch,
        )
        self.manager = ReplicaManager(
            context,
            fetchers=self._fetcher,
            log_dir_fetchers=lambda id_, here: LogDirFetcher(id_, here, self.manager),
        )
        self.server = RequestServer(self.manager, self.delayed)

    def _fetcher(self, fetcher_id: int, leader: BrokerEndPoint) -> ReplicaFetcher:
        return ReplicaFetcher(fetcher_id, EndPoint(self.cluster, self, leader), self.manager)

    def fetchers(self) -> list[ReplicaFetcher]:
        return [f for f in self.manager.replica_fetchers.fetchers().values() if isinstance(f, ReplicaFetcher)]

    def log_dir_fetchers(self) -> list[LogDirFetcher]:
        return [f for f in self.manager.log_dir_fetchers.fetchers().values() if isinstance(f, LogDirFetcher)]

    def catch_up(self) -> None:
        """Apply the whole log in one delta, as a broker does when it starts."""
        self.heard = len(self.cluster.images)
        self.view.image = self.cluster.image
        apply_delta(self.manager, hosted_delta(self.cluster.image, self.id), self.cluster.image)

    def hear(self, upto: int | None = None) -> None:
        """Apply the deltas up to a number of them, one by one."""
        last = len(self.cluster.images) if upto is None else min(upto, len(self.cluster.images))
        while self.up and self.heard < last:
            delta, image = self.cluster.images[self.heard]
            self.heard += 1
            self.view.image = image
            if delta.topics_delta is not None:
                apply_delta(self.manager, delta.topics_delta, image)

    def submit(self, partition, leader_and_isr, on_answer) -> None:
        self.isr_changes.submit(partition, leader_and_isr, self.cluster.called(on_answer))

    def handle_assignment(self, partition, directory_id, reason, on_accepted=None) -> None:
        """AssignReplicasToDirs: the controller accepts it at some time."""
        then = None if on_accepted is None else self.cluster.called(on_accepted)
        self.assignments.handle_assignment(partition, directory_id, reason, then)

    def handle_failure(self, directory_id) -> None: ...

    def log(self, name: TopicPartition):
        return self.logs.get_log(name)

    def batches(self, log) -> Sequence[LogBatch]:
        return log.batches

    def stop(self, *, power: bool, clean: bool) -> None:
        """End the process, or the power of its machine; logs in memory outlive both."""


@attrs.define
class Cluster:
    """A controller over some brokers. `send` decides when a message arrives; by default at once."""

    ids: Iterable[int] = (1, 2, 3)
    min_isr: int = 1
    config: ReplicaManagerConfig = attrs.field(factory=ReplicaManagerConfig)
    cut: set[tuple[int, int]] = attrs.field(factory=set)
    """Pairs (from, to) of brokers that can't reach each other."""
    send: Callable[[Callable[[], None]], None] = attrs.field(default=lambda message: message())
    images: list[tuple[MetadataDelta, MetadataImage]] = attrs.field(factory=list)
    new_node: Callable[[Cluster, int], Node] = Node
    new_session_id: Callable[[], int] = attrs.field(factory=lambda: itertools.count(1).__next__)
    nodes: dict[int, Node] = attrs.field(init=False)
    log_config: LogConfig = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.log_config = LogConfig(min_insync_replicas=self.min_isr)
        self.nodes = {id_: self.new_node(self, id_) for id_ in self.ids}
        self.write(r.FeatureLevelRecord(name="metadata.version", feature_level=20))
        for node in self.nodes.values():
            self.start(node)

    @property
    def image(self) -> MetadataImage:
        return self.images[-1][1] if self.images else MetadataImage.EMPTY

    def write(self, *records: Any) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        image = delta.apply(MetadataProvenance(offset=self.image.offset + len(records), epoch=1))
        self.images.append((delta, image))

    def publish(self) -> None:
        """Every broker applies all deltas."""
        for node in self.nodes.values():
            node.hear()

    def reaches(self, one: int, other: int) -> bool:
        return self.nodes[other].up and (one, other) not in self.cut

    def start(self, node: Node) -> None:
        """Start a broker: it registers with a new epoch, and may lead partitions without a leader."""
        node.start()
        node.epoch = self.image.offset + 1
        self.write(
            r.RegisterBrokerRecord(
                broker_id=node.id, broker_epoch=node.epoch, incarnation_id=uuid_of(10_000 + node.epoch), fenced=False,
                end_points=(r.BrokerEndpoint(name="PLAINTEXT", host="h", port=9000 + node.id, security_protocol=0),),
                features=(), log_dirs=(uuid_of(900 + node.id),),
            )
        )  # fmt: skip
        self._elect_what_has_no_leader(node)
        node.catch_up()

    def unfence(self, node: Node) -> None:
        """The controller unfences a broker."""
        self.write(r.UnfenceBrokerRecord(id=node.id, epoch=node.epoch))
        self._elect_what_has_no_leader(node)

    def _elect_what_has_no_leader(self, node: Node) -> None:
        changes = [
            r.PartitionChangeRecord(partition_id=number, topic_id=FOO, leader=node.id)
            for number, state in self.partitions()
            if state.leader == NO_LEADER and node.id in state.isr
        ]
        if changes:
            self.write(*changes)

    def stop(self, node: Node) -> None:
        """Stop a broker, and let the controller fence it."""
        if node.up:
            node.manager.shutdown()
        node.up = False
        if not self.image.cluster.brokers[node.id].fenced:
            self.fence(node)

    def fence(self, node: Node) -> None:
        """The controller fences a broker: other ISR members, if there are any, lead its partitions."""
        changes: list[Any] = [r.FenceBrokerRecord(id=node.id, epoch=node.epoch)]
        for number, state in self.partitions():
            if node.id not in state.isr:
                continue
            rest = tuple(id_ for id_ in state.isr if id_ != node.id)
            alive = [id_ for id_ in rest if not self.image.cluster.brokers[id_].fenced]
            fields: dict[str, Any] = {"isr": rest} if rest else {}
            if state.leader == node.id:
                fields["leader"] = alive[0] if alive else NO_LEADER
            if not alive:
                fields.pop("isr", None)
            if fields:
                changes.append(r.PartitionChangeRecord(partition_id=number, topic_id=FOO, **fields))
        self.write(*changes)

    def partitions(self):
        topic = self.image.topics.get_topic_by_id(FOO)
        return [] if topic is None else sorted(topic.partitions.items())

    def create(self, partitions: int = 1, leader: int = 1) -> None:
        ids = tuple(self.nodes)
        replicas = (leader, *(id_ for id_ in ids if id_ != leader))
        self.write(
            r.TopicRecord(name="foo", topic_id=FOO),
            *(
                r.PartitionRecord(
                    partition_id=number, topic_id=FOO, replicas=replicas, isr=replicas, leader=leader, leader_epoch=0,
                    partition_epoch=0, directories=tuple(uuid_of(900 + id_) for id_ in replicas),
                )
                for number in range(partitions)
            ),
        )  # fmt: skip

    def elect(self, number: int, leader: int) -> None:
        """Elect another ISR member as leader."""
        self.write(r.PartitionChangeRecord(partition_id=number, topic_id=FOO, leader=leader))

    def carry(self, ask: Callable[[], Any], lost: Any, on_answer: Callable[[Any], None]) -> None:
        """Carry a request to the controller and its answer back; a lost one is answered `lost`."""

        def arrive() -> None:
            answer = ask()
            self.send(lambda: on_answer(answer))

        self.send(arrive)

    def schedule(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Run an action of a broker later."""
        self.send(action)

    def called(self, callback: Callable[..., None]) -> Callable[..., None]:
        """The callback that is really called; simulations let it raise."""
        return callback

    def alter_partition(self, sender: int, number: int, proposed: LeaderAndIsr):
        """The controller's answer to a proposal (ReplicationControlManager.alterPartition)."""
        state = self.image.topics.get_partition(FOO, number)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if proposed.leader_epoch != state.leader_epoch or state.leader != sender:
            return ErrorCode.FENCED_LEADER_EPOCH
        if proposed.partition_epoch != state.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for id_, epoch in proposed.isr:
            broker = self.image.cluster.brokers[id_]
            if broker.fenced or epoch not in (-1, broker.epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        ids = tuple(id_ for id_, _ in proposed.isr)
        if frozenset(ids) != frozenset(state.isr):
            self.write(r.PartitionChangeRecord(partition_id=number, topic_id=FOO, isr=ids))
            state = self.image.topics.get_partition(FOO, number)
        return LeaderAndIsr(
            leader=sender, leader_epoch=state.leader_epoch, isr=proposed.isr, partition_epoch=state.partition_epoch
        )

    def assign(self, id_: int, directories: Mapping[TopicIdPartition, Uuid]) -> None:
        """What the controller writes of the log directories of a broker's replicas; here it forgets them."""

    # shorthands of tests

    def append(self, leader: int, *values: bytes, number: int = 0, acks: int = 1) -> None:
        partition = self.nodes[leader].manager.partition_or_raise(TopicPartition("foo", number))
        append_records_to_leader(partition, batch(*(values or (b"x",))), required_acks=acks)

    def work(self, rounds: int = 1) -> None:
        """Run rounds of all fetchers."""
        for _ in range(rounds):
            for node in self.nodes.values():
                for fetcher in node.fetchers() if node.up else ():
                    fetcher.do_work()

    def advance(self, milliseconds: float) -> None:
        for node in self.nodes.values():
            node.clock.advance(milliseconds)
