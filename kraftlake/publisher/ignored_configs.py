"""Warnings about configs of topics, nodes, groups and client metrics without effect here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

import attrs

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.log import get_logger
from kraftlake.settings.dynamic_settings import problem_of_setting
from kraftlake.settings.tables import BROKER, why_ignored

_log = get_logger(__name__)


@attrs.frozen(order=True)
class IgnoredConfig:
    """A config without effect: its owner, as in `topic orders`, and the reason."""

    resource: str
    name: str
    reason: str

    @property
    def sentence(self) -> str:
        """The warning as a sentence."""
        return f"{self.name} of {self.resource} has no effect: {self.reason}"


def configs_without_effect(before: MetadataImage, after: MetadataImage) -> Iterator[IgnoredConfig]:
    """The configs without effect that were set or changed between two images."""
    of_data = attrgetter("data")
    for resource, name, value in _changed(before.configs.resource_data, after.configs.resource_data, of_data):
        if (reason := _reason(resource, name, value)) is not None:
            kind = resource.type_name.lower().replace("_", " ")
            is_of_all = resource.type == BROKER and not resource.name
            yield IgnoredConfig("all brokers" if is_of_all else f"{kind} {resource.name}", name, reason)


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any], values_of: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yield the new and changed values: the owner's key, their names, and the values."""
    if after is before:
        return
    for key, image in after.items():
        old = before.get(key)
        if old is not image:
            earlier = {} if old is None else values_of(old)
            yield from ((key, name, value) for name, value in values_of(image).items() if earlier.get(name) != value)


def _reason(resource: ConfigResource, name: str, value: str) -> str | None:
    """The reason why a config has no effect: its kind has none, or a broker does not accept the value.

    None if it has one.
    """
    ignored = why_ignored(resource.type, name, value)
    if ignored is not None:
        return ignored.reason
    problem = problem_of_setting(name, value, of_all=not resource.name) if resource.type == BROKER else None
    return problem and problem.rstrip(".")


class IgnoredConfigs:
    """Finds newly set configs without effect in successive images, each config of a resource once."""

    def __init__(self) -> None:
        self._image = MetadataImage.EMPTY
        self._given: set[tuple[str, str]] = set()

    def newly_set(self, image: MetadataImage) -> list[IgnoredConfig]:
        """The configs not reported before, in the order of resources."""
        found = sorted(
            one for one in configs_without_effect(self._image, image) if (one.resource, one.name) not in self._given
        )
        self._image = image
        self._given |= {(one.resource, one.name) for one in found}
        return found


class IgnoredConfigsPublisher(MetadataPublisher):
    """Logs each config of a resource that has no effect: all at the node's start, later ones while the node leads."""

    name = "IgnoredConfigsPublisher"

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._configs = IgnoredConfigs()
        self._leader: int | None = None
        self._has_started = False

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        """Log the newly set configs."""
        for one in self._configs.newly_set(new_image):
            if not self._has_started or self._leader == self._node_id:
                _log.warning("config_without_effect", resource=one.resource, config=one.name, why=one.reason)
        self._has_started = True

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        """Store the leader."""
        self._leader = leader_and_epoch.leader_id
