"""Changes of dynamic configs."""

from __future__ import annotations

from kraftlake.delta.changes import drop_missing, with_changes
from kraftlake.image.configurations_image import (
    TOPIC_RESOURCE,
    ConfigResource,
    ConfigurationImage,
    ConfigurationsImage,
)
from kraftlake.records.metadata_records import ConfigRecord


class ConfigurationDelta:
    """Changes of one resource: `changes` has the new value by config name, None for a removed one."""

    def __init__(self, image: ConfigurationImage) -> None:
        self.image = image
        self.changes: dict[str, str | None] = {}

    def replay(self, record: ConfigRecord) -> None:
        """A null value removes the config."""
        self.changes[record.name] = record.value

    def delete_all(self) -> None:
        """The resource was deleted: remove all its configs, of this delta and of the base image."""
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


class ConfigurationsDelta:
    """`changes` has a ConfigurationDelta by resource. Source: org.apache.kafka.image.ConfigurationsDelta."""

    def __init__(self, image: ConfigurationsImage) -> None:
        self.image = image
        self.changes: dict[ConfigResource, ConfigurationDelta] = {}

    def finish_snapshot(self) -> None:
        """Remove the resources and the configs that the snapshot lacks."""
        for resource in self.image.resource_data:
            self._delta(resource).finish_snapshot()

    def replay(self, record: ConfigRecord) -> None:
        """Set or remove one config; its resource need not exist."""
        self._delta(ConfigResource(record.resource_type, record.resource_name)).replay(record)

    def replay_remove_topic(self, topic_name: str) -> None:
        """Remove the topic's configs, also those set within this delta."""
        resource = ConfigResource(TOPIC_RESOURCE, topic_name)
        if resource in self.changes or resource in self.image.resource_data:
            self._delta(resource).delete_all()

    def apply(self) -> ConfigurationsImage:
        """The image after the changes; the same object if there are none."""
        images = {resource: delta.apply() for resource, delta in self.changes.items()}
        kept = {resource: None if image.is_empty() else image for resource, image in images.items()}
        resource_data = with_changes(self.image.resource_data, kept)
        if resource_data is self.image.resource_data:
            return self.image
        return ConfigurationsImage(resource_data=resource_data)

    def _delta(self, resource: ConfigResource) -> ConfigurationDelta:
        delta = self.changes.get(resource)
        if delta is None:
            image = self.image.resource_data.get(resource) or ConfigurationImage(resource=resource)
            delta = self.changes[resource] = ConfigurationDelta(image)
        return delta
