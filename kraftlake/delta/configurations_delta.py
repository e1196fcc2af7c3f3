"""Changes of dynamic configs."""

from __future__ import annotations

from typing import TypeAlias

from rpds import HashTrieMap

from kraftlake.delta.with_changes import drop_missing, with_changes
from kraftlake.image.configurations_image import (
    TOPIC_RESOURCE,
    ConfigResource,
    ConfigurationImage,
    ConfigurationsImage,
)
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.settings.tables import is_supported


class ConfigurationDelta:
    """Changes of one resource: `changes` has the new value by config name, None for a removed one."""

    def __init__(self, image: ConfigurationImage) -> None:
        self.image = image
        self.changes: dict[str, str | None] = {}

    def replay(self, record: ConfigRecord) -> None:
        """Set a config, or remove it if the value is null."""
        self.changes[record.name] = record.value

    def delete_all(self) -> None:
        """Remove all configs of the deleted resource, of this delta and of the base image."""
        self.changes.clear()
        drop_missing(self.image.data, self.changes)

    def finish_snapshot(self) -> None:
        """Remove the configs that the snapshot lacks."""
        drop_missing(self.image.data, self.changes)

    def apply(self) -> ConfigurationImage:
        """The image after the changes; the same object if there are none."""
        data = with_changes(self.image.data, self.changes)
        if data is self.image.data:
            return self.image
        return ConfigurationImage(resource=self.image.resource, data=data)


_Images: TypeAlias = "HashTrieMap[ConfigResource, ConfigurationImage]"
_Deltas: TypeAlias = dict[ConfigResource, ConfigurationDelta]


class ConfigurationsDelta:
    """`changes` has a ConfigurationDelta by resource, `ignored` those of the configs that Kafka 4.4 does not know.

    Source: org.apache.kafka.image.ConfigurationsDelta, with DefaultSupportedConfigChecker.
    """

    def __init__(self, image: ConfigurationsImage) -> None:
        self.image = image
        self.changes: _Deltas = {}
        self.ignored: _Deltas = {}

    def finish_snapshot(self) -> None:
        """Remove the resources and the configs that the snapshot lacks."""
        for images, deltas in self._kinds():
            for resource in images:
                _delta_of(resource, images, deltas).finish_snapshot()

    def replay(self, record: ConfigRecord) -> None:
        """Set or remove one config; its resource need not exist. Configs unknown to Kafka 4.4 change no state."""
        resource = ConfigResource(record.resource_type, record.resource_name)
        delta = _delta_of(resource, self.image.resource_data, self.changes)
        if not is_supported(record.resource_type, record.name):
            delta = _delta_of(resource, self.image.ignored, self.ignored)
        delta.replay(record)

    def replay_remove_topic(self, topic_name: str) -> None:
        """Remove the topic's configs, also those set within this delta."""
        resource = ConfigResource(TOPIC_RESOURCE, topic_name)
        for images, deltas in self._kinds():
            if resource in deltas or resource in images:
                _delta_of(resource, images, deltas).delete_all()

    def apply(self) -> ConfigurationsImage:
        """The image after the changes; the same object if there are none."""
        resource_data, ignored = (_applied(images, deltas) for images, deltas in self._kinds())
        if resource_data is self.image.resource_data and ignored is self.image.ignored:
            return self.image
        return ConfigurationsImage(resource_data=resource_data, ignored=ignored)

    def _kinds(self) -> tuple[tuple[_Images, _Deltas], tuple[_Images, _Deltas]]:
        return (self.image.resource_data, self.changes), (self.image.ignored, self.ignored)


def _delta_of(resource: ConfigResource, images: _Images, deltas: _Deltas) -> ConfigurationDelta:
    delta = deltas.get(resource)
    if delta is None:
        delta = deltas[resource] = ConfigurationDelta(images.get(resource) or ConfigurationImage(resource=resource))
    return delta


def _applied(images: _Images, deltas: _Deltas) -> _Images:
    after = {resource: delta.apply() for resource, delta in deltas.items()}
    return with_changes(images, {resource: None if image.is_empty() else image for resource, image in after.items()})
