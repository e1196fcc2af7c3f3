"""A broker driven by a metadata log: its ReplicaManager over logs in memory, without data to fetch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.broker_partitions import hosted_partitions
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.records.metadata_version import LATEST
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, FetcherFigures, InitialFetchState
from kraftlake.replica_manager.logs.log_manager import is_reserved
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.stop_partition import StopPartition
from kraftlake.replica_manager.transitions import Transition, TransitionKind, TransitionListener
from kraftlake.runtime.clock import ManualClock

UNDECIDED = "(the log does not say which)"
"""The directory of a replica for which no record has named one."""
_WHOLE = ImageWriterOptions(metadata_version=LATEST, elr_enabled=True)
"""Options for records with the whole state of a partition."""


class StillFetcher:
    """A fetcher that only holds its partitions: a metadata log has no data to fetch."""

    def __init__(self, fetcher_id: int, leader: BrokerEndPoint) -> None:
        self.fetcher_id = fetcher_id
        self.leader = leader
        self.states: dict[TopicPartition, InitialFetchState] = {}

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        return len(self.states)

    def figures(self) -> FetcherFigures:
        """Zero counters."""
        return FetcherFigures(name=f"ReplicaFetcherThread-{self.fetcher_id}-{self.leader.id}")

    def start(self) -> None:
        """Return without action."""

    def shutdown(self) -> None:
        """Return without action."""

    def await_shutdown(self, timeout_s: float) -> bool:  # noqa: ARG002
        """Return at once: the fetcher has no thread."""
        return True

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Add partitions."""
        self.states.update(states)

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Remove partitions; returns their offsets."""
        mine = self.states
        return {name: mine.pop(name).offset for name in partitions if name in mine} if mine else {}

    def mark_for_truncation(self, name: TopicPartition, offset: int) -> None:
        """Return without action."""

    def remove_all_partitions(self) -> Mapping[TopicPartition, InitialFetchState]:
        """Remove all partitions; returns their states."""
        states, self.states = self.states, {}
        return states


class _NoPeers:
    """Replaces the controller and the clients, which a replayed broker lacks: their effects are records."""

    def submit(self, *_: object, **__: object) -> None:
        """Drop the request without an answer."""

    def handle_assignment(self, *_: object, **__: object) -> None:
        """Return without action: the controller's answer is a record."""

    def handle_failure(self, *_: object, **__: object) -> None:
        """Return without action: the controller's answer is a record."""

    def check_and_complete_all(self, topic_partition: TopicPartition) -> None:
        """Return without action: no request waits."""

    def complete_when_not_leader(self, topic_partition: TopicPartition) -> None:
        """Return without action: no request waits."""


class _RecordedLogManager(MemoryLogManager):
    """Assigns each log to the directory that the records name; without such records, to the only directory."""

    def _directory_for(self, wanted: Uuid | None) -> str:
        if wanted is not None and not is_reserved(wanted):
            return str(wanted)
        return next(iter(self.directories)) if len(self.directories) == 1 else UNDECIDED

    def move(self, partition: TopicPartition, directory_id: Uuid) -> None:
        """Note the directory that a record names: the broker has created the log there, or moved it."""
        log = self.get_log(partition)
        if log is not None and not is_reserved(directory_id):
            log.directory = str(directory_id)

    def strays(self, hosted: Mapping[TopicPartition, Uuid]) -> list[TopicPartition]:
        """Remove and return the partitions whose logs a restarted broker finds to be stray."""
        found = [name for name, log in self._logs.items() if hosted.get(name) != log.topic_id]
        for name in found:
            del self._logs[name]
        return sorted(found)

    def take_registered(self, directories: tuple[Uuid, ...], *, restarted: bool) -> list[str]:
        """Set the registered directories; returns those lost while the broker runs."""
        wanted = {str(id_): id_ for id_ in directories}
        lost = [name for name in self.directories if name not in wanted]
        if restarted:
            self.offline = {}
            self.directories = wanted
            return []
        self.directories.update({name: id_ for name, id_ in wanted.items() if name not in self.offline})
        return lost


class ReplayedBroker:
    """Broker `broker_id` with a real ReplicaManager; `listener` receives each transition.

    The broker's own actions are derived from the records that they caused: a directory that is no longer registered has
    failed, a registration in controlled shutdown means that the broker shuts down, and a new incarnation id means that
    the broker was restarted with the logs it had.
    """

    def __init__(
        self,
        broker_id: int,
        listener: TransitionListener,
        *,
        inter_broker_listener: str | None = None,
        num_replica_fetchers: int = 1,
    ) -> None:
        self.broker_id = broker_id
        self._listener = listener
        self._inter_broker_listener = inter_broker_listener
        self._num_replica_fetchers = num_replica_fetchers
        self._view = MetadataView()
        self._logs = _RecordedLogManager({})
        self._registration: BrokerRegistration | None = None
        self.manager = self._start_manager()

    @property
    def image(self) -> MetadataImage:
        """The last image."""
        return self._view.image

    def start(self, image: MetadataImage) -> None:
        """Start with an image, by one delta from the empty image with the partitions that the broker hosts."""
        self._take_registration(image)
        self._apply(hosted_delta(image, self.broker_id), image)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply the delta that leads to the next image."""
        if delta.cluster_delta is not None and self._take_registration(image):
            self._restart(image)
            return
        if delta.topics_delta is None:
            self._view.image = image
        else:
            self._apply(delta.topics_delta, image)

    def load_snapshot(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply the delta of a whole snapshot.

        Such a delta removes no replica of a topic that still exists; in Kafka 4.4 such replicas stay until the broker
        restarts. Here they are removed, so that the hosted partitions match the image.
        """
        self.publish(delta, image)
        hosted = hosted_delta(image, self.broker_id).changed_topics
        ids = {topic.name: topic_id for topic_id, topic in hosted.items()}
        gone = [
            StopPartition(partition=name, delete_local_log=True, reason="the snapshot has no replica of it here")
            for name in sorted(self.manager.hosted_partitions())
            if name.topic not in ids or name.partition not in hosted[ids[name.topic]].partition_changes
        ]
        self.manager.stop_partitions(gone)
        self.manager.replica_fetchers.shutdown_idle_fetchers()

    def _restart(self, image: MetadataImage) -> None:
        delta = hosted_delta(image, self.broker_id)
        hosted = {
            TopicPartition(topic.name, number): topic_id
            for topic_id, topic in delta.changed_topics.items()
            for number in topic.partition_changes
        }
        for stray in self._logs.strays(hosted):
            self._listener(
                Transition(
                    kind=TransitionKind.LOG_DELETED, partition=stray, reason="no replica of it when the broker started"
                )
            )
        self._apply(delta, image)

    def _apply(self, delta: TopicsDelta, image: MetadataImage) -> None:
        self._view.image = image
        for partition, directory in delta.local_changes(self.broker_id).directory_ids.items():
            self._logs.move(partition.topic_partition, directory)
        apply_delta(self.manager, delta, image)

    def _take_registration(self, image: MetadataImage) -> bool:
        """Apply a new state of the broker's own registration; returns whether the broker was restarted."""
        registration, known = image.cluster.brokers.get(self.broker_id), self._registration
        if registration is None or registration is known:
            return False
        self._registration = registration
        self._view.image = image
        restarted = known is not None and known.incarnation_id != registration.incarnation_id
        if known is None or restarted:
            self._logs.take_registered(registration.directories, restarted=True)
            if restarted:
                self.manager.shutdown()
            self._listener(
                Transition(kind=TransitionKind.BROKER_STARTED, reason=f"incarnation {registration.incarnation_id}")
            )
        if restarted or (known is None and not self.manager.hosted_partitions()):
            self.manager = self._start_manager()
        if not restarted:
            for lost in self._logs.take_registered(registration.directories, restarted=False):
                self.manager.handle_log_dir_failure(lost)
        if registration.in_controlled_shutdown:
            self.manager.begin_controlled_shutdown()
        return restarted

    def _start_manager(self) -> ReplicaManager:
        no_peers = _NoPeers()
        context = BrokerContext(
            broker_id=self.broker_id,
            config=ReplicaManagerConfig(
                inter_broker_listener_name=self._listener_name(), num_replica_fetchers=self._num_replica_fetchers
            ),
            clock=ManualClock(),
            log_manager=self._logs,
            metadata=self._view,
            alter_partition_manager=no_peers,
            directory_events=no_peers,
            delayed_operations=no_peers,
            broker_epoch=lambda: -1 if self._registration is None else self._registration.epoch,
            listener=self._listener,
        )
        return ReplicaManager(context, fetchers=StillFetcher, log_dir_fetchers=StillFetcher)

    def _listener_name(self) -> str:
        """Return the listener given to the constructor; else the first by name that all registered brokers have."""
        if self._inter_broker_listener is not None:
            return self._inter_broker_listener
        listeners = [set(broker.listeners) for broker in self.image.cluster.brokers.values()]
        common = set.intersection(*listeners) if listeners else set()
        return min(common, default="PLAINTEXT")

    # the present state

    def roles(self) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """The partitions that the broker leads, and the others that it hosts (leaderless and offline too); sorted."""
        leads: list[TopicPartition] = []
        follows: list[TopicPartition] = []
        for name, hosted in self.manager.hosted_partitions().items():
            if isinstance(hosted, Partition):
                (leads if hosted.is_leader else follows).append(name)
            elif self._is_assigned(name):
                follows.append(name)
        return sorted(leads), sorted(follows)

    def _is_assigned(self, name: TopicPartition) -> bool:
        """Whether the image assigns the replica: the manager keeps offline replicas until the broker restarts."""
        topic = self.image.topics.get_topic(name.topic)
        registration = None if topic is None else topic.partitions.get(name.partition)
        return registration is not None and self.broker_id in registration.replicas

    def log_directory(self, name: TopicPartition) -> str | None:
        """The log directory of a replica, None without a log."""
        log = self._logs.get_log(name)
        return None if log is None else log.directory

    def fetchers(self) -> list[StillFetcher]:
        """The fetchers, by leader and id."""
        fetchers = self.manager.replica_fetchers.fetchers()
        return [fetcher for _, fetcher in sorted(fetchers.items()) if isinstance(fetcher, StillFetcher)]


def hosted_delta(image: MetadataImage, broker_id: int) -> TopicsDelta:
    """Return a delta from the empty image with only the partitions that have a replica on the broker, in name order."""
    hosted: dict[str, dict[int, PartitionRegistration]] = {}
    for name, partition_id, state in hosted_partitions(image.topics, broker_id):
        hosted.setdefault(name, {})[partition_id] = state
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay_all(record.message for record in _records(image.topics, hosted))
    return delta.get_or_create_topics_delta()


def _records(
    topics: TopicsImage, hosted: Mapping[str, Mapping[int, PartitionRegistration]]
) -> Iterator[ApiMessageAndVersion]:
    for name, partitions in sorted(hosted.items()):
        topic = topics.get_topic(name)
        assert topic is not None, "the image has just named it"
        yield from attrs.evolve(topic, partitions=partitions).write(_WHOLE)
