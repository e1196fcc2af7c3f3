"""One metadata delta, carried out by a replica manager. Source: kafka.server.ReplicaManager.applyDelta."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraftlake.delta import LocalReplicaChanges, PartitionInfo, TopicIdPartition, TopicPartition, TopicsDelta
from kraftlake.image import MetadataImage, PartitionRegistration
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import KafkaStorageError, describe_error
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.stop_partition import StopPartition
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.log import get_logger

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager

_log = get_logger(__name__)


class DeltaApplication:
    """Carries out the `changes` of a delta, with the replica manager's lock held.

    One thing differs from Kafka 4.4: there, a leader whose log can't be made because its directory may be offline ends
    the whole delta; here it is told of and the others go on.
    """

    def __init__(
        self, manager: ReplicaManager, delta: TopicsDelta, new_image: MetadataImage, changes: LocalReplicaChanges
    ) -> None:
        self._manager = manager
        self._delta = delta
        self._image = new_image
        self._changes = changes
        self._changed: list[Partition] = []

    def run(self) -> None:
        """All of it."""
        changes, manager = self._changes, self._manager
        if changes.deletes:
            self._delete(changes.deletes)
        if changes.leaders or changes.followers:
            if changes.leaders:
                self._lead()
            if changes.followers:
                self._follow()
            self._add_log_dir_fetchers(self._changed)
            manager.replica_fetchers.shutdown_idle_fetchers()
            manager.log_dir_fetchers.shutdown_idle_fetchers()
        version = self._image.features.metadata_version
        if version is not None and version.is_directory_assignment_supported:
            for partition, directory_id in changes.directory_ids.items():
                self._report_directory(partition, directory_id)

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
            self._manager.tell(TransitionKind.LOG_DELETE_FAILED, name, reason=reason)

    def _why_deleted(self, name: TopicPartition) -> str:
        if self._manager.listener is None:
            return ""
        if self._delta.topic_was_deleted(name.topic):
            return "the topic was deleted"
        return f"broker {self._manager.broker_id} is no longer one of its replicas"

    # leaders

    def _lead(self) -> None:
        manager, leaders = self._manager, self._changes.leaders
        manager.replica_fetchers.remove_fetcher_for_partitions(leaders)
        for name, info in leaders.items():
            found = manager.get_or_create_partition(name, info.topic_id)
            if found is None:
                self._still_offline(name)
                continue
            partition, is_new = found
            epoch, known = partition.leader_epoch, partition.partition_epoch
            try:
                partition.make_leader(info.partition, is_new=is_new, directory_id=self._directory_of(name, info))
            except KafkaStorageError as error:
                _log.info("leader_skipped", partition=str(name), topic_id=str(info.topic_id), reason=str(error))
                manager.mark_partition_offline(name, str(error))
                continue
            except Exception as error:
                _log.error("leader_failed", partition=str(name), reason=describe_error(error))
                manager.tell(TransitionKind.REPLICA_FAILED, name, reason=describe_error(error))
                continue
            self._changed.append(partition)
            if manager.listener is not None and info.partition.partition_epoch >= known:
                elected = info.partition.leader_epoch > epoch
                kind = TransitionKind.BECAME_LEADER if elected else TransitionKind.LEADER_UPDATED
                self._tell(kind, name, info, partition.log)

    # followers

    def _follow(self) -> None:
        manager = self._manager
        to_fetch: dict[TopicPartition, Partition] = {}
        to_stop: list[StopPartition] = []
        for name, info in self._changes.followers.items():
            found = manager.get_or_create_partition(name, info.topic_id)
            if found is None:
                self._still_offline(name)
                continue
            partition, is_new = found
            known = partition.partition_epoch
            try:
                is_new_epoch = partition.make_follower(
                    info.partition, is_new=is_new, directory_id=self._directory_of(name, info)
                )
            except KafkaStorageError as error:
                _log.error("follower_skipped", partition=str(name), topic_id=str(info.topic_id), reason=str(error))
                manager.replica_fetchers.add_failed_partition(name)
                manager.mark_partition_offline(name, str(error))
                continue
            except Exception as error:
                _log.error("follower_failed", partition=str(name), reason=describe_error(error))
                manager.replica_fetchers.add_failed_partition(name)
                manager.tell(TransitionKind.REPLICA_FAILED, name, reason=describe_error(error))
                continue
            self._changed.append(partition)
            if manager.listener is not None and info.partition.partition_epoch >= known:
                kind = TransitionKind.BECAME_FOLLOWER if is_new_epoch else TransitionKind.FOLLOWER_UPDATED
                self._tell(kind, name, info, partition.log)
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
        """Why a broker that is shutting down stops following; empty where it goes on."""
        if not self._manager.in_controlled_shutdown:
            return ""
        if registration.leader == NO_LEADER:
            return "the broker is shutting down and the partition has no leader"
        if self._manager.broker_id not in registration.isr:
            return "the broker is shutting down and is not in the ISR"
        return ""

    def _restart_fetching(self, partitions: dict[TopicPartition, Partition]) -> None:
        manager = self._manager
        manager.replica_fetchers.remove_fetcher_for_partitions(partitions)
        states: dict[TopicPartition, InitialFetchState] = {}
        leaders = {id_: self._reach(id_) for id_ in {partition.leader_id for partition in partitions.values()}}
        for name, partition in partitions.items():
            leader, why_not = leaders[partition.leader_id]
            if leader is None:
                manager.tell(TransitionKind.NOT_FETCHING, name, reason=why_not)
                continue
            log = partition.local_log
            states[name] = InitialFetchState(
                topic_id=partition.topic_id,
                leader=leader,
                current_leader_epoch=partition.leader_epoch,
                offset=initial_fetch_offset(log),
            )
        manager.replica_fetchers.add_fetcher_for_partitions(states)
        for name in partitions:
            manager.delayed_operations.complete_when_not_leader(name)

    def _reach(self, leader_id: int | None) -> tuple[BrokerEndPoint | None, str]:
        """Where a leader is reached, or why it can't be."""
        if leader_id is None or leader_id == NO_LEADER:
            return None, "the partition has no leader"
        broker = self._image.cluster.brokers.get(leader_id)
        if broker is None:
            return None, f"its leader, broker {leader_id}, is not registered"
        listener = self._manager.config.inter_broker_listener_name
        endpoint = broker.listeners.get(listener)
        if endpoint is None:
            return None, f"its leader, broker {leader_id}, has no listener {listener}"
        return BrokerEndPoint(leader_id, endpoint.host, endpoint.port), ""

    # directories

    def _directory_of(self, name: TopicPartition, info: PartitionInfo) -> Uuid | None:
        return self._changes.directory_ids.get(TopicIdPartition(info.topic_id, name))

    def _add_log_dir_fetchers(self, partitions: Iterable[Partition]) -> None:
        """Go on moving the replicas that are on their way to another directory."""
        manager = self._manager
        states: dict[TopicPartition, InitialFetchState] = {}
        here = BrokerEndPoint(manager.broker_id, "localhost", -1)
        for partition in partitions:
            future = manager.log_manager.get_log(partition.topic_partition, is_future=True)
            if future is None or partition.log is None:
                continue
            partition.maybe_create_future_log(future.directory)
            states[partition.topic_partition] = InitialFetchState(
                topic_id=partition.topic_id,
                leader=here,
                current_leader_epoch=partition.leader_epoch,
                offset=future.high_watermark,
            )
        if states:
            manager.log_dir_fetchers.add_fetcher_for_partitions(states)

    def _report_directory(self, partition: TopicIdPartition, assigned: Uuid) -> None:
        """Tell the controller where the replica lies, where it believes otherwise.

        One that believes in a copy which is about to take the replica's place has been told so. Of any other belief, a
        move that is under way is told anew afterwards: of a replica, the last directory counts.
        """
        manager = self._manager
        log = manager.log_manager.get_log(partition.topic_partition)
        actual = None if log is None else manager.log_manager.directory_id(log.directory)
        if log is None or actual is None or actual == assigned:
            return
        online = manager.online_partition(partition.topic_partition)
        future = None if online is None else online.future_log
        if future is not None:
            if manager.log_manager.directory_id(future.directory) == assigned:
                return
            manager.log_dir_fetchers.remove_fetcher_for_partitions([partition.topic_partition])
        manager.directory_events.handle_assignment(partition, actual, "a metadata delta was applied")
        if manager.listener is not None:
            manager.listener(
                Transition(
                    kind=TransitionKind.DIRECTORY_REPORTED,
                    partition=partition.topic_partition,
                    topic_id=partition.topic_id,
                    directory=log.directory,
                    reason=f"the metadata says {assigned}",
                )
            )
        if online is not None and future is not None:
            self._add_log_dir_fetchers([online])

    # telling

    def _still_offline(self, name: TopicPartition) -> None:
        self._manager.tell(TransitionKind.PARTITION_OFFLINE, name, reason="it lies in a log directory that is offline")

    def _tell(self, kind: TransitionKind, name: TopicPartition, info: PartitionInfo, log: PartitionLog | None) -> None:
        listener = self._manager.listener
        assert listener is not None
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
    """Why a partition has no leader, as far as the image tells: what is wrong with those that may lead it."""
    candidates = registration.isr or registration.elr
    if not candidates:
        return "no replica is in sync"
    words = [f"broker {id_} {_state_of(id_, image)}" for id_ in candidates]
    return f"nobody in sync can lead: {', '.join(words)}"


def _state_of(broker_id: int, image: MetadataImage) -> str:
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        return "is not registered"
    if broker.fenced:
        return "is fenced"
    return "is shutting down" if broker.in_controlled_shutdown else "was not elected"


def initial_fetch_offset(log: PartitionLog) -> int:
    """Where a follower begins: at its end, as the answer tells where it diverges; without epochs at the high watermark.

    Source: KIP-595's truncation on fetch.
    """
    return log.high_watermark if log.latest_epoch is None else log.log_end_offset
