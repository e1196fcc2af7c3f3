"""Dynamic configs: the configs of a resource, the defaults below it, and handlers of changes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.publisher.driven import DynamicConfigHandler
from kraftlake.replay.loader.manifest import LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.fault_handler import FaultHandler
from kraftlake.runtime.log import get_logger


class ConfigType(IntEnum):
    """The resources that have dynamic configs. Source: org.apache.kafka.common.config.ConfigResource.Type."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


DEFAULT_NAME = ""
"""The name of the default entity of a type; for brokers, the cluster-wide configs."""


class DynamicConfigPublisher(MetadataPublisher):
    """Calls the handler of the type with all configs of each changed resource.

    Of broker resources, only this broker and the default are handled. A handler's fault is reported with the resource's
    name, never with values, and the other resources are still handled.

    Source: kafka.server.metadata.DynamicConfigPublisher.
    """

    def __init__(
        self, node_id: int, handlers: Mapping[ConfigType, DynamicConfigHandler], fault_handler: FaultHandler
    ) -> None:
        self._node_id = node_id
        self._handlers = handlers
        self._fault_handler = fault_handler
        self._log = get_logger(__name__).bind(node=node_id)

    @property
    def name(self) -> str:
        """Kafka's name of the publisher."""
        return f"DynamicConfigPublisher broker id={self._node_id}"

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Handle the resources in the delta."""
        changes = {} if delta.configs_delta is None else delta.configs_delta.changes
        for resource in changes:
            handler = self._handler_of(resource)
            if handler is None:
                continue
            configs = new_image.configs.config_map(resource)
            self._log.info("configs_updated", resource=_shown(resource), names=sorted(configs))
            try:
                handler.process_config_changes(resource.name, configs)
            except Exception as fault:
                self._fault_handler.handle_fault(
                    f"updating {_shown(resource)} with new configs of MetadataDelta up to {new_image.offset}", fault
                )

    def _handler_of(self, resource: ConfigResource) -> DynamicConfigHandler | None:
        if resource.type not in ConfigType.__members__.values():
            return None
        kind = ConfigType(resource.type)
        if kind is ConfigType.BROKER and resource.name not in (DEFAULT_NAME, str(self._node_id)):
            return None
        return self._handlers.get(kind)


def _shown(resource: ConfigResource) -> str:
    return f"{resource.type_name.lower()} {resource.name or '(default)'}"
