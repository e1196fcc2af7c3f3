"""Applies one metadata delta to the replicas of a broker. Source: kafka.server.ReplicaManager.applyDelta."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from kraftlake.delta.topics.local_replica_changes import (
    LocalReplicaChanges,
    PartitionInfo,
    TopicIdPartition,
    TopicPartition,
)
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import NO_LEADER, PartitionRegistration
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.errors import KafkaStorageError, describe_error
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.stop_partition import StopPartition
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


def apply_delta(manager: ReplicaManager, topics_delta: TopicsDelta, new_image: MetadataImage) -> None:
    """Apply the changes of the topics that concern this broker.

    Deletes come first, then leaders, then followers, then replicas that move between log directories. A change that
    fails is logged and reported to the listener; the other changes are applied.
    """
    changes = topics_delta.local_changes(manager.context.broker_id)
    with manager.lock:
        _DeltaApplication(manager.context, manager, topics_delta, new_image, changes).run()


@attrs.define(eq=False, repr=False)
class _DeltaApplication:
    """Applies the local `changes` of a delta, with the replica manager's lock held.

    Differs from Kafka 4.4 in one case: when a leader's log can't be created because its directory may be offline,
    Kafka stops applying the delta; here the partition is reported and the others are applied.
    """

    _context: BrokerContext
    _manager: ReplicaManager
    _delta: TopicsDelta
    _image: MetadataImage
    _changes: LocalReplicaChanges
    _changed: list[Partition] = attrs.field(factory=list, init=False)

    def run(self) -> None:
        """Apply the whole delta."""
        changes, manager = self._changes, self._manager
        if changes.deletes:
            self._delete(changes.deletes)
        if changes.leaders or changes.followers:
            if changes.leaders:
                self._make_leaders()
            if changes.followers:
                self._make_followers()
            self._add_log_dir_fetchers(self._changed)
            manager.replica_fetchers.shutdown_idle_fetchers()
            manager.log_dir_fetchers.shutdown_idle_fetchers()
        version = self._image.features.metadata_version
        if version is not None and version.is_directory_assignment_supported:
            for partition, directory_id in changes.directory_ids.items():
                self._report_directory(partition, directory_id)

    def _partitions_of(
        self, changes: Mapping[TopicPartition, PartitionInfo]
    ) -> Iterator[tuple[TopicPartition, PartitionInfo, Partition, bool]]:
        """The partitions of changes, and whether each is new to the broker; offline partitions are reported."""
        for name, info in changes.items():
            found = self._manager.get_or_create_partition(name, info.topic_id)
            if found is None:
                reason = "it lies in a log directory that is offline"
                self._context.report(TransitionKind.PARTITION_OFFLINE, name, reason=reason)
            else:
                yield name, info, *found

    # deletes

    def _delete(self, deletes: Iterable[TopicPartition]) -> None:
        stops = [
            StopPartition(partition=name, delete_local_log=True, reason=self._why_deleted(name))
            for name in sorted(deletes)
        ]
        for name, error in self._manager.stop_partitions(stops).items():
            offline = isinstance(error, KafkaStorageError)
            reason = "its log directory is offline" if offline else describe_error(error)
            _log.error("replica_not_deleted", partition=str(name), reason=reason)
            self._context.report(TransitionKind.LOG_DELETE_FAILED, name, reason=reason)

    def _why_deleted(self, name: TopicPartition) -> str:
        if self._context.listener is None:
            return ""
        if self._delta.topic_was_deleted(name.topic):
            return "the topic was deleted"
        return f"broker {self._context.broker_id} is no longer one of its replicas"

    # leaders

    def _make_leaders(self) -> None:
        manager, leaders = self._manager, self._changes.leaders
        manager.replica_fetchers.remove_fetcher_for_partitions(leaders)
        for name, info, partition, is_new in self._partitions_of(leaders):
            epoch, known = partition.leader_epoch, partition.partition_epoch
            try:
                partition.make_leader(info.partition, is_new=is_new, directory_id=self._directory_of(name, info))
            except Exception as error:
                self._report_failure("leader", partition, error)
                continue
            self._changed.append(partition)
            elected = info.partition.leader_epoch > epoch
            self._report_role(
                TransitionKind.BECAME_LEADER if elected else TransitionKind.LEADER_UPDATED, info, partition, known
            )

    # followers

    def _make_followers(self) -> None:
        manager = self._manager
        to_fetch: dict[TopicPartition, Partition] = {}
        to_stop: list[StopPartition] = []
        for name, info, partition, is_new in self._partitions_of(self._changes.followers):
            known = partition.partition_epoch
            try:
                is_new_epoch = partition.make_follower(
                    info.partition, is_new=is_new, directory_id=self._directory_of(name, info)
                )
            except Exception as error:
                manager.replica_fetchers.add_failed_partition(name)
                self._report_failure("follower", partition, error)
                continue
            self._changed.append(partition)
            self._report_role(
                TransitionKind.BECAME_FOLLOWER if is_new_epoch else TransitionKind.FOLLOWER_UPDATED,
                info,
                partition,
                known,
            )
            stop_reason = self._why_stopped(info.partition)
            if stop_reason:
                to_stop.append(StopPartition(partition=name, delete_local_log=False, reason=stop_reason))
            elif is_new_epoch:
                to_fetch[name] = partition
        if to_fetch:
            self._restart_fetching(to_fetch)
        if to_stop:
            manager.stop_partitions(to_stop)

    def _why_stopped(self, registration: PartitionRegistration) -> str:
        """The reason for which a broker that is shutting down stops following; empty if it continues."""
        if not self._manager.in_controlled_shutdown:
            return ""
        if registration.leader == NO_LEADER:
            return "the broker is shutting down and the partition has no leader"
        if self._context.broker_id not in registration.isr:
            return "the broker is shutting down and is not in the ISR"
        return ""

    def _restart_fetching(self, partitions: dict[TopicPartition, Partition]) -> None:
        fetchers = self._manager.replica_fetchers
        fetchers.remove_fetcher_for_partitions(partitions)
        states: dict[TopicPartition, InitialFetchState] = {}
        leaders = {id_: self._end_point_of(id_) for id_ in {partition.leader_id for partition in partitions.values()}}
        for name, partition in partitions.items():
            leader, why_not = leaders[partition.leader_id]
            if leader is None:
                self._context.report(TransitionKind.NOT_FETCHING, name, reason=why_not)
                continue
            states[name] = InitialFetchState(
                topic_id=partition.topic_id,
                leader=leader,
                current_leader_epoch=partition.leader_epoch,
                offset=initial_fetch_offset(partition.local_log),
            )
        fetchers.add_fetcher_for_partitions(states)
        for name in partitions:
            self._context.delayed_operations.complete_when_not_leader(name)

    def _end_point_of(self, leader_id: int | None) -> tuple[BrokerEndPoint | None, str]:
        """The end point of a leader, or None and the reason why the leader can't be reached."""
        if leader_id is None or leader_id == NO_LEADER:
            return None, "the partition has no leader"
        broker = self._image.cluster.brokers.get(leader_id)
        if broker is None:
            return None, f"its leader, broker {leader_id}, is not registered"
        listener = self._context.config.inter_broker_listener_name
        endpoint = broker.listeners.get(listener)
        if endpoint is None:
            return None, f"its leader, broker {leader_id}, has no listener {listener}"
        return BrokerEndPoint(leader_id, endpoint.host, endpoint.port), ""

    # directories

    def _directory_of(self, name: TopicPartition, info: PartitionInfo) -> Uuid | None:
        return self._changes.directory_ids.get(TopicIdPartition(info.topic_id, name))

    def _add_log_dir_fetchers(self, partitions: Iterable[Partition]) -> None:
        """Continue the moves of replicas to another log directory."""
        states: dict[TopicPartition, InitialFetchState] = {}
        for partition in partitions:
            name = partition.topic_partition
            future = self._context.log_manager.get_log(name, is_future=True)
            if future is not None and partition.log is not None:
                partition.maybe_create_future_log(future.directory)
                states[name] = future_fetch_state(partition, future)
        if states:
            self._manager.log_dir_fetchers.add_fetcher_for_partitions(states)

    def _report_directory(self, partition: TopicIdPartition, assigned: Uuid) -> None:
        """Report a replica's log directory to the controller, where the metadata names another one.

        No report is due when the metadata names the directory of the future log: the fetcher that promotes the future
        log has reported it. Any other move is restarted after the report, so that the controller receives the move's
        directory last.
        """
        name, logs, fetchers = partition.topic_partition, self._context.log_manager, self._manager.log_dir_fetchers
        log = logs.get_log(name)
        actual = None if log is None else logs.directory_id(log.directory)
        if log is None or actual is None or actual == assigned:
            return
        online = self._manager.online_partition(name)
        future = None if online is None else online.future_log
        if future is not None:
            if logs.directory_id(future.directory) == assigned:
                return
            fetchers.remove_fetcher_for_partitions([name])
        self._context.directory_events.handle_assignment(partition, actual, "a metadata delta was applied")
        self._context.report(
            TransitionKind.DIRECTORY_REPORTED,
            name,
            topic_id=partition.topic_id,
            directory=log.directory,
            reason=f"the metadata says {assigned}",
        )
        if online is not None and future is not None:
            self._add_log_dir_fetchers([online])

    # reports

    def _report_failure(self, role: str, partition: Partition, error: Exception) -> None:
        """Report a partition that could not take a role; a failed log directory takes the partition offline."""
        name = partition.topic_partition
        if isinstance(error, KafkaStorageError):
            log = _log.info if role == "leader" else _log.error
            log("replica_skipped", role=role, partition=str(name), topic_id=str(partition.topic_id), reason=str(error))
            self._manager.mark_partition_offline(name, str(error))
        else:
            _log.error("replica_failed", role=role, partition=str(name), reason=describe_error(error))
            self._context.report(TransitionKind.REPLICA_FAILED, name, reason=describe_error(error))

    def _report_role(self, kind: TransitionKind, info: PartitionInfo, partition: Partition, known_epoch: int) -> None:
        """Report the role that a partition has taken, unless the metadata is older than `known_epoch`."""
        listener = self._context.listener
        if listener is None or info.partition.partition_epoch < known_epoch:
            return
        name, log = partition.topic_partition, partition.log
        leaderless = kind is TransitionKind.BECAME_FOLLOWER and info.partition.leader == NO_LEADER
        listener(
            Transition(
                kind=kind,
                reason=why_leaderless(info.partition, self._image) if leaderless else "",
                partition=name,
                topic_id=info.topic_id,
                before=self._delta.image.get_partition(info.topic_id, name.partition),
                after=info.partition,
                directory=None if log is None else log.directory,
            )
        )


def why_leaderless(registration: PartitionRegistration, image: MetadataImage) -> str:
    """The reason why a partition has no leader, as far as the image shows: the state of each broker that may lead."""
    candidates = registration.isr or registration.elr
    if not candidates:
        return "no replica is in sync"
    words = [f"broker {id_} {_state_of(id_, image)}" for id_ in candidates]
    return f"no replica in sync can lead: {', '.join(words)}"


def _state_of(broker_id: int, image: MetadataImage) -> str:
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        return "is not registered"
    if broker.fenced:
        return "is fenced"
    return "is shutting down" if broker.in_controlled_shutdown else "was not elected"


def initial_fetch_offset(log: PartitionLog) -> int:
    """The offset at which a follower starts to fetch.

    A log with leader epochs starts at its end, because the leader's answer names the offset of a divergence; a log
    without leader epochs starts at its high watermark. Source: truncation on fetch, KIP-595.
    """
    return log.high_watermark if log.latest_epoch is None else log.log_end_offset


def future_fetch_state(partition: Partition, future: PartitionLog) -> InitialFetchState:
    """The start of the copy of a replica into its future log; the leader is this broker."""
    return InitialFetchState(
        topic_id=partition.topic_id,
        leader=BrokerEndPoint(partition.context.broker_id, "localhost", -1),
        current_leader_epoch=partition.leader_epoch,
        offset=future.high_watermark,
    )
