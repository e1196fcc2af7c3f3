"""A controller without a disk: appended records are durable at once, and only a test advances the clock."""

from __future__ import annotations

import random
from typing import Any, TypeVar

from kraftlake.controller.cluster.brokers import BrokerHeartbeatReply, process_heartbeat, register_broker
from kraftlake.controller.cluster.heartbeats import BrokerHeartbeats
from kraftlake.controller.cluster.supported_features import SUPPORTED
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.quorum.active_controller import ActiveController
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata
from kraftlake.controller.replication.topics import CreatableTopic, CreatedTopic, create_topics
from kraftlake.controller.state import Command, ControllerState
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.metadata_log.log import leader_change
from kraftlake.protocol.broker_requests import BrokerHeartbeatRequest, BrokerRegistrationRequest
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import BrokerEndpoint, BrokerFeature
from kraftlake.records.metadata_version import MetadataVersion, from_feature_level
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.clock import ManualClock

T = TypeVar("T")
EPOCH = 1
NODE = 100
CLUSTER_ID = "clusterclusterclusterA"
ALL_FEATURES = tuple(
    BrokerFeature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
    for name, levels in sorted(SUPPORTED.items())
)


def directory(broker: int, number: int = 0) -> Uuid:
    """The id of a broker's log directory."""
    return Uuid(f"directory-{broker:03d}-{number:02d}".encode())


def incarnation(broker: int, number: int = 0) -> Uuid:
    """The id of a broker's process."""
    return Uuid(f"processof-{broker:03d}-{number:02d}".encode())


class ControlledCluster:
    """`log` has all batches since the LeaderChange, `added` the messages of the last command's records."""

    def __init__(
        self,
        *,
        version: MetadataVersion | None = None,
        features: dict[str, int] | None = None,
        **config: Any,
    ) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.config = ControllerConfig(node_id=NODE, cluster_id=CLUSTER_ID, **config)
        self.log: list[RecordBatch] = [leader_change(NODE, 0, EPOCH, self.clock.milliseconds())]
        self.added: list[Message] = []
        ids = random.Random(7)
        self.state = ControllerState(
            config=self.config,
            image=MetadataImage.EMPTY,
            next_offset=1,
            heartbeats=BrokerHeartbeats(self.config.broker_session_timeout_ms * 1_000_000),
            registration_offsets={},
            random=random.Random(11),
            new_id=lambda: Uuid(b"id" + ids.randbytes(14)),
        )
        self.controller = ActiveController(self.state, epoch=EPOCH, clock=self.clock)
        bootstrap = BootstrapMetadata.of(version or from_feature_level(33), features)
        self._append(self.controller.activate(lambda: bootstrap))

    @property
    def image(self) -> MetadataImage:
        """The image of the durable records."""
        return self.controller.committed

    def run(self, command: Command[T]) -> T:
        """Run a command; returns its response when its records are durable. Raises ControllerApiError."""
        self.added = []
        executed = self.controller.execute(command)
        self._append(executed)
        return executed.response

    def _append(self, executed: Any) -> None:
        base = executed.base_offset
        for records in executed.batches:
            batch = RecordBatch.of(base, EPOCH, self.clock.milliseconds(), records)
            self.log.append(batch)
            self.added += [record.message for record in batch.messages()]
            base = batch.last_offset + 1
            self.controller.committed_up_to(batch.last_offset)

    def register(
        self, broker: int, *, rack: str | None = None, process: int = 0, dirs: int = 1, clean: int = -1
    ) -> int:
        """Register a broker; the epoch that it gets."""
        request = BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=CLUSTER_ID,
            incarnation_id=incarnation(broker, process),
            listeners=(BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092 + broker, security_protocol=0),),
            features=ALL_FEATURES,
            rack=rack,
            log_dirs=tuple(directory(broker, number) for number in range(dirs)),
            previous_broker_epoch=clean,
        )
        return self.run(lambda state: register_broker(state, request)).broker_epoch

    def heartbeat(self, broker: int, *, offset: int | None = None, **wishes: Any) -> BrokerHeartbeatReply:
        """A heartbeat of a registered broker that has read up to `offset`, by default everything."""
        registration = self.state.registration(broker)
        request = BrokerHeartbeatRequest(
            broker_id=broker,
            broker_epoch=-1 if registration is None else registration.epoch,
            current_metadata_offset=self.state.next_offset - 1 if offset is None else offset,
            **wishes,
        )
        return self.run(lambda state: process_heartbeat(state, request))

    def start(self, *brokers: int, rack: str | None = None) -> None:
        """Register brokers and unfence them."""
        for broker in brokers:
            self.register(broker, rack=rack)
            assert not self.heartbeat(broker).is_fenced

    def create(self, name: str, **topic: Any) -> CreatedTopic:
        """Create a topic; how it went."""
        wanted = CreatableTopic(name=name, **topic)
        return self.run(lambda state: create_topics(state, [wanted]))[name]

    def assigned(self, name: str, *partitions: tuple[int, ...], **topic: Any) -> None:
        """Create a topic with these replicas."""
        created = self.create(name, assignments=list(enumerate(partitions)), **topic)
        assert not created.error.is_failure, created.error

    def partition(self, name: str, number: int = 0) -> PartitionRegistration:
        """A partition's committed state."""
        topic = self.image.topics.get_topic(name)
        assert topic is not None
        return topic.partitions[number]

    def topic_id(self, name: str) -> Uuid:
        """A topic's id."""
        topic = self.image.topics.get_topic(name)
        assert topic is not None
        return topic.id
