"""Interfaces of the parts of a broker that its publisher updates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.uuid import Uuid

StrayCheck = Callable[[Uuid | None, int], bool]
"""Returns whether the log of a topic id (None if it has none) and partition is stray: not assigned to this broker."""


class LogManager(Protocol):
    """The replicas on disk. Source: org.apache.kafka.storage.internals.log.LogManager."""

    def startup(self, topics: Collection[str], is_stray: StrayCheck) -> None:
        """Recover the logs of `topics` and separate strays, which are not served."""
        ...

    def recover_abandoned_future_logs(self, broker_id: int, topics: TopicsImage) -> None:
        """Promote future replicas in the directory that the controller has assigned."""
        ...


class ReplicaManager(Protocol):
    """The leaders and followers on this broker. Source: kafka.server.ReplicaManager."""

    def startup(self) -> None:
        """Start the periodic tasks: ISR expiration, log directory failures."""
        ...

    def stop_reassigned(self, new_image: MetadataImage) -> None:
        """Stop the replicas that an image from a snapshot does not place on this broker."""
        ...

    def start_high_watermark_check_point_thread(self) -> None:
        """Start to checkpoint high watermarks: the last step, when every partition has one."""
        ...


class DynamicConfigHandler(Protocol):
    """Handles changes of a resource's dynamic configs. Source: kafka.server.ConfigHandler."""

    def process_config_changes(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply all configs now set for resource `name`; "" is the default of the type."""
        ...
