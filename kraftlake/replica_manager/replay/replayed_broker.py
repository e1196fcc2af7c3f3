"""A broker that is driven through history: its ReplicaManager over logs in memory, with nobody to fetch from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from kraftlake.delta import MetadataDelta, TopicIdPartition, TopicPartition, TopicsDelta
from kraftlake.image import BrokerRegistration, ImageWriterOptions, MetadataImage, PartitionRegistration, TopicsImage
from kraftlake.image.broker_partitions import hosted_partitions
from kraftlake.records.metadata_version import LATEST
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.controller_channel import AlterPartitionAnswer, LeaderAndIsr
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, FetcherFigures, InitialFetchState
from kraftlake.replica_manager.logs.memory_log_manager import MemoryLogManager, is_reserved
from kraftlake.replica_manager.metadata_view import ImageView
from kraftlake.replica_manager.partition.hosted_partition import OnlinePartition
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.stop_partition import StopPartition
from kraftlake.replica_manager.transitions import Transition, TransitionKind, TransitionListener
from kraftlake.runtime.clock import ManualClock

UNDECIDED = "(the log does not say which)"
"""The directory of a replica whose directory no record has named yet."""
_WHOLE = ImageWriterOptions(metadata_version=LATEST, elr_enabled=True)
"""Records that hold all of a partition's state."""


class StillFetcher:
    """A fetcher that has its partitions and fetches nothing: a metadata log holds no data."""

    def __init__(self, fetcher_id: int, leader: BrokerEndPoint) -> None:
        self.fetcher_id = fetcher_id
        self.leader = leader
        self.states: dict[TopicPartition, InitialFetchState] = {}

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        return len(self.states)

    def figures(self) -> FetcherFigures:
        """Nothing was fetched."""
        return FetcherFigures(name=f"ReplicaFetcherThread-{self.fetcher_id}-{self.leader.id}")

    def start(self) -> None:
        """Nothing to begin."""

    def shutdown(self) -> None:
        """Nothing to end."""

    def await_shutdown(self, timeout_s: float) -> bool:  # noqa: ARG002
        """Nothing runs."""
        return True

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Have these too."""
        self.states.update(states)

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Have these no longer."""
        mine = self.states
        return {name: mine.pop(name).offset for name in partitions if name in mine} if mine else {}

    def mark_for_truncation(self, name: TopicPartition, offset: int) -> None:
        """Nothing to truncate."""

    def remove_all_partitions(self) -> Mapping[TopicPartition, InitialFetchState]:
        """Have nothing."""
        states, self.states = self.states, {}
        return states


class _Nobody:
    """The controller and the clients of a replayed broker: there are none, and what is in the log is their doing."""

    def submit(
        self,
        partition: TopicIdPartition,
        leader_and_isr: LeaderAndIsr,
        on_answer: Callable[[AlterPartitionAnswer], None],
    ) -> None:
        """A proposal without an answer."""

    def handle_assignment(
        self,
        partition: TopicIdPartition,
        directory_id: Uuid,
        reason: str,
        on_accepted: Callable[[], None] | None = None,
    ) -> None:
        """The answer, if there was one, is a record."""

    def handle_failure(self, directory_id: Uuid) -> None:
        """The answer, if there was one, is a record."""

    def check_and_complete_all(self, topic_partition: TopicPartition) -> None:
        """Nobody waits."""

    def complete_when_not_leader(self, topic_partition: TopicPartition) -> None:
        """Nobody waits."""

    def has_delayed_deletes(self) -> bool:
        """Nobody waits."""
        return False


class _RecordedLogManager(MemoryLogManager):
    """Puts each log where the records say that it lies, and where they don't, in the only directory there is."""

    def _directory_for(self, wanted: Uuid | None) -> str:
        if wanted is not None and not is_reserved(wanted):
            return str(wanted)
        return next(iter(self.directories)) if len(self.directories) == 1 else UNDECIDED

    def move(self, partition: TopicPartition, directory_id: Uuid) -> None:
        """A record says where the log lies: the broker has put it there, or moved it."""
        log = self.get_log(partition)
        if log is not None and not is_reserved(directory_id):
            log.directory = str(directory_id)

    def strays(self, hosted: Mapping[TopicPartition, Uuid]) -> list[TopicPartition]:
        """Forget the logs that a broker which starts again finds to be nobody's, and name them."""
        found = [name for name, log in self._logs.items() if hosted.get(name) != log.topic_id]
        for name in found:
            del self._logs[name]
        return sorted(found)

    def take_registered(self, directories: tuple[Uuid, ...], *, restarted: bool) -> list[str]:
        """Have the registered directories; gives those that are lost to a broker that goes on."""
        wanted = {str(id_): id_ for id_ in directories}
        lost = [name for name in self.directories if name not in wanted]
        if restarted:
            self.offline = {}
            self.directories = wanted
            return []
        self.directories.update({name: id_ for name, id_ in wanted.items() if name not in self.offline})
        return lost


class ReplayedBroker:
    """Broker `broker_id` with the real ReplicaManager in it; `listener` is told of each transition.

    What a broker does of its own accord is told by the records that followed: a directory that is registered no longer
    has failed, a registration that is in controlled shutdown was asked for by a broker that shuts down, and a new
    incarnation is a broker that was started again, with its logs as they were and everything else anew.
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
        self._view = ImageView()
        self._logs = _RecordedLogManager({})
        self._registration: BrokerRegistration | None = None
        self.manager = self._start_manager()

    @property
    def image(self) -> MetadataImage:
        """The image that it was given last."""
        return self._view.image

    def start(self, image: MetadataImage) -> None:
        """Begin with an image, in one delta from the empty one that holds what the broker hosts."""
        self._take_registration(image)
        self._apply(hosted_delta(image, self.broker_id), image)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Go on to the next image."""
        if delta.cluster_delta is not None and self._take_registration(image):
            self._restart(image)
            return
        if delta.topics_delta is None:
            self._view.image = image
        else:
            self._apply(delta.topics_delta, image)

    def load_snapshot(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Go on to the image of a snapshot that was loaded whole.

        Its delta knows nothing of replicas that were taken from a topic which is still there: in Kafka 4.4 they stay
        until the broker starts again. Here they go, so that what is hosted is what the image says.
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
                    kind=TransitionKind.LOG_DELETED, partition=stray, reason="nobody's any more when the broker started"
                )
            )
        self._apply(delta, image)

    def _apply(self, delta: TopicsDelta, image: MetadataImage) -> None:
        self._view.image = image
        for partition, directory in delta.local_changes(self.broker_id).directory_ids.items():
            self._logs.move(partition.topic_partition, directory)
        self.manager.apply_delta(delta, image)

    def _take_registration(self, image: MetadataImage) -> bool:
        """Do what a new state of the broker's own registration tells; whether it was started again."""
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
        nobody = _Nobody()
        return ReplicaManager(
            self.broker_id,
            ReplicaManagerConfig(
                inter_broker_listener_name=self._listener_name(), num_replica_fetchers=self._num_replica_fetchers
            ),
            ManualClock(),
            log_manager=self._logs,
            metadata=self._view,
            fetchers=StillFetcher,
            log_dir_fetchers=StillFetcher,
            alter_partition_manager=nobody,
            directory_events=nobody,
            delayed_operations=nobody,
            broker_epoch=lambda: -1 if self._registration is None else self._registration.epoch,
            listener=self._listener,
        )

    def _listener_name(self) -> str:
        """The listener asked for; else the first by name that every registered broker has: no record tells."""
        if self._inter_broker_listener is not None:
            return self._inter_broker_listener
        listeners = [set(broker.listeners) for broker in self.image.cluster.brokers.values()]
        common = set.intersection(*listeners) if listeners else set()
        return min(common, default="PLAINTEXT")

    # what it hosts now

    def roles(self) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """What it leads, and everything else that it hosts (leaderless and offline ones too); both sorted."""
        leads: list[TopicPartition] = []
        follows: list[TopicPartition] = []
        for name, hosted in self.manager.hosted_partitions().items():
            if isinstance(hosted, OnlinePartition):
                (leads if hosted.partition.is_leader else follows).append(name)
            elif self._is_assigned(name):
                follows.append(name)
        return sorted(leads), sorted(follows)

    def _is_assigned(self, name: TopicPartition) -> bool:
        """Whether the image still has an offline replica: the manager remembers it until the broker restarts."""
        topic = self.image.topics.get_topic(name.topic)
        registration = None if topic is None else topic.partitions.get(name.partition)
        return registration is not None and self.broker_id in registration.replicas

    def log_directory(self, name: TopicPartition) -> str | None:
        """Where a replica's log lies, None without one."""
        log = self._logs.get_log(name)
        return None if log is None else log.directory

    def fetchers(self) -> list[StillFetcher]:
        """Its fetchers, by leader and id."""
        fetchers = self.manager.replica_fetchers.fetchers()
        return [fetcher for _, fetcher in sorted(fetchers.items()) if isinstance(fetcher, StillFetcher)]


def hosted_delta(image: MetadataImage, broker_id: int) -> TopicsDelta:
    """A delta from the empty image that holds just the partitions with a replica on the broker, by name."""
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
