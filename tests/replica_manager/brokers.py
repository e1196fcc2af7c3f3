"""A ReplicaManager over logs in memory, driven by records; its reports are kept."""

from __future__ import annotations

from typing import Any

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.broker_context import BrokerContext
from kraftlake.replica_manager.config import ReplicaManagerConfig
from kraftlake.replica_manager.delta_application import apply_delta
from kraftlake.replica_manager.fetch.log_dir_fetcher import LogDirFetcher
from kraftlake.replica_manager.logs.memory_log import MemoryLogManager
from kraftlake.replica_manager.metadata_view import MetadataView
from kraftlake.replica_manager.replay.replayed_broker import StillFetcher
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.transitions import Transition, TransitionKind
from kraftlake.runtime.clock import ManualClock
from tests.histories import uuid_of

FOO, BAR = uuid_of(500), uuid_of(501)
D1, D2 = uuid_of(901), uuid_of(902)
ME = 1


def feature(level: int = 20) -> r.FeatureLevelRecord:
    return r.FeatureLevelRecord(name="metadata.version", feature_level=level)


def broker(
    id_: int, *, epoch: int = 100, fenced: bool = False, shutdown: bool = False, port: int = 9092, name="PLAINTEXT"
):
    return r.RegisterBrokerRecord(
        broker_id=id_, broker_epoch=epoch + id_, incarnation_id=uuid_of(700 + id_), fenced=fenced,
        in_controlled_shutdown=shutdown, features=(), log_dirs=(D1,) if id_ == ME else (),
        end_points=(r.BrokerEndpoint(name=name, host=f"b{id_}", port=port, security_protocol=0),),
    )  # fmt: skip


def topic(name: str = "foo", topic_id: Uuid = FOO) -> r.TopicRecord:
    return r.TopicRecord(name=name, topic_id=topic_id)


def partition(
    number: int = 0, *, leader: int, replicas=(1, 2, 3), isr=None, topic_id=FOO, directories=None, epoch=0, **more
):
    return r.PartitionRecord(
        partition_id=number, topic_id=topic_id, replicas=replicas, isr=replicas if isr is None else isr, leader=leader,
        leader_epoch=epoch, partition_epoch=epoch,
        directories=(D1,) * len(replicas) if directories is None else directories,
        **more,
    )  # fmt: skip


def change(number: int = 0, topic_id: Uuid = FOO, **fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(partition_id=number, topic_id=topic_id, **fields)


def tp(number: int = 0, name: str = "foo") -> TopicPartition:
    return TopicPartition(name, number)


class Controller:
    """The broker's reports to the controller and its clients."""

    def __init__(self) -> None:
        self.proposals: list[tuple[Any, Any, Any]] = []
        self.assignments: list[tuple[Any, Uuid]] = []
        self.on_accepted: Any = None
        self.failures: list[Uuid] = []
        self.completed: list[TopicPartition] = []
        self.given_up: list[TopicPartition] = []

    def submit(self, partition, leader_and_isr, on_answer):
        self.proposals.append((partition, leader_and_isr, on_answer))

    def handle_assignment(self, partition, directory_id, reason, on_accepted=None):
        self.assignments.append((partition, directory_id))
        self.on_accepted = on_accepted

    def handle_failure(self, directory_id):
        self.failures.append(directory_id)

    def check_and_complete_all(self, topic_partition):
        self.completed.append(topic_partition)

    def complete_when_not_leader(self, topic_partition):
        self.given_up.append(topic_partition)


class Broker:
    """Broker 1, whose image follows from the given records."""

    def __init__(
        self,
        *,
        log_manager: Any = None,
        config: ReplicaManagerConfig | None = None,
        delayed: Any = None,
        moving: bool = False,
        scheduler: Any = None,
    ) -> None:
        """`delayed` makes what delayed operations wait in, of the clock; otherwise the calls are only noted.

        With `moving` replicas are really moved between directories, by fetchers that a test turns; `scheduler` makes
        the scheduler of the broker's own tasks, of the clock.
        """
        self.transitions: list[Transition] = []
        self.view = MetadataView()
        self.controller = Controller()
        self.clock = ManualClock(1_000_000)
        self.delayed = self.controller if delayed is None else delayed(self.clock)
        self.logs = log_manager or MemoryLogManager({"d1": D1, "d2": D2}, topic_configs=self.view.topic_configs)
        context = BrokerContext(
            broker_id=ME,
            config=config or ReplicaManagerConfig(),
            clock=self.clock,
            log_manager=self.logs,
            metadata=self.view,
            alter_partition_manager=self.controller,
            directory_events=self.controller,
            delayed_operations=self.delayed,
            broker_epoch=lambda: 101,
            listener=self.transitions.append,
        )
        self.manager = ReplicaManager(
            context,
            fetchers=StillFetcher,
            log_dir_fetchers=(lambda id_, here: LogDirFetcher(id_, here, self.manager)) if moving else StillFetcher,
            scheduler=None if scheduler is None else scheduler(self.clock),
        )

    def hear(self, *records: Any) -> list[Transition]:
        """Apply one delta of these records; returns the transitions."""
        delta = MetadataDelta(self.view.image)
        for record in records:
            delta.replay(record)
        offset = self.view.image.offset + len(records)
        image = delta.apply(MetadataProvenance(offset=offset, epoch=1))
        self.view.image = image
        del self.transitions[:]
        if delta.topics_delta is not None:
            apply_delta(self.manager, delta.topics_delta, image)
        return list(self.transitions)

    def partition(self, number: int = 0, name: str = "foo"):
        found = self.manager.online_partition(tp(number, name))
        assert found is not None
        return found

    def fetched(self) -> dict[TopicPartition, tuple[int, int, int]]:
        """(leader, fetcher id, leader epoch) of each fetched partition."""
        return {
            name: (key[0], key[1], state.current_leader_epoch)
            for key, fetcher in self.manager.replica_fetchers.fetchers().items()
            for name, state in fetcher.states.items()
        }


def kinds(transitions: list[Transition]) -> list[TransitionKind]:
    return [transition.kind for transition in transitions]


def started(*records: Any, **options: Any) -> Broker:
    """A broker with three registered brokers and these records."""
    made = Broker(**options)
    made.hear(feature(), broker(1), broker(2), broker(3), *records)
    return made


EMPTY = MetadataImage.EMPTY
