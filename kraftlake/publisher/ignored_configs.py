"""Warns of configs in the log that have no effect here: those of topics, nodes, groups, client metrics, and quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.replay import LeaderAndEpoch, LoaderManifest, MetadataPublisher
from kraftlake.runtime import get_logger
from kraftlake.settings import BROKER, CLIENT_QUOTAS, why_ignored

_log = get_logger(__name__)
_ALL_BROKERS: Final = "all brokers"


@attrs.frozen(order=True)
class IgnoredConfig:
    """A config, or quota, without effect: whose it is, as in `topic orders`, and why."""

    resource: str
    name: str
    reason: str

    @property
    def sentence(self) -> str:
        """What is told to a person."""
        return f"{self.name} of {self.resource} has no effect: {self.reason}"


def configs_without_effect(before: MetadataImage, after: MetadataImage) -> Iterator[IgnoredConfig]:
    """The configs and quotas without effect that were set, or got other values, between two images."""
    if after.configs is not before.configs:
        for resource, configs in after.configs.resource_data.items():
            old = before.configs.resource_data.get(resource)
            if old is configs:
                continue
            earlier = {} if old is None else old.data
            kind = resource.type_name.lower().replace("_", " ")
            whose = f"{kind} {resource.name}" if resource.name or resource.type != BROKER else _ALL_BROKERS
            for name, value in configs.data.items():
                ignored = why_ignored(resource.type, name, value) if earlier.get(name) != value else None
                if ignored is not None:
                    yield IgnoredConfig(whose, name, ignored.reason)
    if after.client_quotas is not before.client_quotas:
        for entity, quotas in after.client_quotas.entities.items():
            old_quotas = before.client_quotas.entities.get(entity)
            if old_quotas is quotas:
                continue
            entries = (f"{kind} {name}" if name is not None else f"each {kind}" for kind, name in entity.entries)
            whose = " and ".join(entries)
            for name, quota in quotas.quotas.items():
                if old_quotas is None or old_quotas.quotas.get(name) != quota:
                    yield IgnoredConfig(whose, name, CLIENT_QUOTAS.reason)


class IgnoredConfigs:
    """Finds what is newly set without effect in image after image, each config of a resource once."""

    def __init__(self) -> None:
        self._image = MetadataImage.EMPTY
        self._told: set[tuple[str, str]] = set()

    def newly_set(self, image: MetadataImage) -> list[IgnoredConfig]:
        """What has not been given before, in the order of resources."""
        found = sorted(
            one for one in configs_without_effect(self._image, image) if (one.resource, one.name) not in self._told
        )
        self._image = image
        self._told |= {(one.resource, one.name) for one in found}
        return found


class IgnoredConfigsPublisher(MetadataPublisher):
    """Logs each config of a resource that has no effect: all at the node's start, later ones while it leads."""

    name = "IgnoredConfigsPublisher"

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._configs = IgnoredConfigs()
        self._leader: int | None = None
        self._has_started = False

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Log what is new."""
        for one in self._configs.newly_set(new_image):
            if not self._has_started or self._leader == self._node_id:
                _log.warning("config_without_effect", resource=one.resource, config=one.name, why=one.reason)
        self._has_started = True

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        """Take in who leads."""
        self._leader = leader_and_epoch.leader_id
