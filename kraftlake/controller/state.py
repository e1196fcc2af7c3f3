"""The input of every command: the pending image, the soft state of brokers, the configuration and the time."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import attrs

from kraftlake.controller.cluster.heartbeats import BrokerHeartbeats
from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.configs.config_schema import (
    effective_min_isr,
    effective_topic_config,
    fallback_sources,
    fallback_topic_configs,
)
from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.result import ControllerResult
from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.features_image import KRAFT_VERSION, METADATA_VERSION
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.directory_id import MIGRATING, UNASSIGNED
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.writer_options import ImageWriterOptions
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_version import MetadataVersion
from kraftlake.records.uuid import Uuid

T = TypeVar("T")


@attrs.define(kw_only=True, eq=False)
class ControllerState:
    """The state of an active controller as a command sees it.

    `image` is the pending image, which includes appended records that are not durable yet. `next_offset` is the offset
    of the command's first record. `registration_offsets` has the offset of each broker's last RegisterBrokerRecord;
    `kraft_version` comes from the control records of the log. `now_ms` (wall clock) and `now_ns` (monotonic) are the
    time of the command; `random` and `new_id` are its only sources of randomness.
    """

    config: ControllerConfig
    image: MetadataImage
    next_offset: int
    heartbeats: BrokerHeartbeats
    registration_offsets: dict[int, int]
    kraft_version: int = 0
    now_ms: int = 0
    now_ns: int = 0
    random: random.Random = attrs.field(factory=random.Random)
    new_id: Callable[[], Uuid] = Uuid.random
    _fallback: tuple[tuple[Mapping[str, str], ...], dict[str, str | None]] | None = attrs.field(
        init=False, default=None
    )

    @property
    def metadata_version(self) -> MetadataVersion:
        """The finalized metadata.version; the first activation writes one."""
        version = self.image.features.metadata_version
        assert version is not None, "activation writes the metadata.version before any command runs"
        return version

    @property
    def finalized_levels(self) -> dict[str, int]:
        """The finalized level of each feature, with metadata.version and kraft.version."""
        levels = dict(self.image.features.finalized_versions.items())
        return {**levels, METADATA_VERSION: self.metadata_version.level, KRAFT_VERSION: self.kraft_version}

    @property
    def elr_enabled(self) -> bool:
        """Whether partitions have eligible leader replicas (KIP-966)."""
        return self.image.features.is_elr_enabled

    @property
    def writer_options(self) -> ImageWriterOptions:
        """The options for writing the state of a new partition."""
        return ImageWriterOptions(metadata_version=self.metadata_version, elr_enabled=self.elr_enabled)

    def registration(self, broker_id: int) -> BrokerRegistration | None:
        """A broker's registration."""
        return self.image.cluster.brokers.get(broker_id)

    def is_active(self, broker_id: int) -> bool:
        """Whether the broker is registered, not fenced and not shutting down."""
        broker = self.registration(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown

    def has_online_dir(self, broker_id: int, directory: Uuid) -> bool:
        """Whether the broker has reported `directory` as online; reserved ids count as online, except LOST."""
        broker = self.registration(broker_id)
        return broker is not None and broker.has_online_dir(directory)

    def default_dir(self, broker_id: int) -> Uuid:
        """The directory of a new replica on the broker: its only one; UNASSIGNED if the broker has to choose."""
        if not self.metadata_version.is_directory_assignment_supported:
            return MIGRATING
        broker = self.registration(broker_id)
        if broker is None:
            return UNASSIGNED
        if not broker.directories:
            return MIGRATING
        return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED

    def check_broker_epoch(self, broker_id: int, broker_epoch: int) -> BrokerRegistration:
        """Return the registration of a broker; raises ControllerApiError(STALE_BROKER_EPOCH) if none has that epoch."""
        broker = self.registration(broker_id)
        if broker is None:
            raise ControllerApiError(ErrorCode.STALE_BROKER_EPOCH, f"Broker {broker_id} is not registered.")
        if broker.epoch != broker_epoch:
            raise ControllerApiError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Broker {broker_id} has the epoch {broker.epoch}, the request {broker_epoch}.",
            )
        return broker

    def topic(self, name: str) -> TopicImage | None:
        """A topic by its name."""
        return self.image.topics.get_topic(name)

    def partition(self, topic: str, number: int) -> tuple[TopicImage, PartitionRegistration]:
        """Return a topic and its partition.

        Raises ControllerApiError(UNKNOWN_TOPIC_OR_PARTITION) if either is missing.
        """
        image = self.topic(topic)
        partition = None if image is None else image.partitions.get(number)
        if image is None or partition is None:
            raise ControllerApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{number}.")
        return image, partition

    def topic_config(self, topic: str, name: str) -> str | None:
        """The effective value of a topic's config; None for an unknown name."""
        return effective_topic_config(self.image.configs, self.config, topic, name)

    def fallback_topic_configs(self) -> Mapping[str, str | None]:
        """The effective configs of a topic without own ones, by name; cached until one of their sources changes."""
        sources = fallback_sources(self.image.configs, self.config)
        if self._fallback is None or self._fallback[0] != sources:
            self._fallback = (sources, fallback_topic_configs(sources))
        return self._fallback[1]

    def effective_min_isr(self, topic: TopicImage) -> int:
        """The effective `min.insync.replicas` of a topic, limited to the replication factor of its first partition."""
        min_isr = effective_min_isr(self.image.configs, self.config, topic.name)
        first = topic.partitions.get(0) or topic.partitions[min(topic.partitions)]  # a damaged log may lack 0
        return min(min_isr, len(first.replicas))

    def unclean_election_enabled(self, topic: str) -> bool:
        """Whether `unclean.leader.election.enable` is true for a topic."""
        value = self.topic_config(topic, "unclean.leader.election.enable")
        return value is not None and value.lower() == "true"


Command: TypeAlias = Callable[[ControllerState], ControllerResult[T]]
"""A command of the controller: a function of its state, without I/O, clock or threads."""
