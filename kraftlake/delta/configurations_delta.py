"""Changes of dynamic configs."""

from __future__ import annotations

from rpds import HashTrieMap

from kraftlake.delta.with_changes import Deltas, EntriesDelta
from kraftlake.image.configurations_image import (
    TOPIC_RESOURCE,
    ConfigResource,
    ConfigurationImage,
    ConfigurationsImage,
)
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.settings.tables import is_supported


class ConfigurationDelta(EntriesDelta[ConfigurationImage, str, str]):
    """Changes of one resource's configs by name. Source: org.apache.kafka.image.ConfigurationDelta."""

    ENTRIES = "data"

    def replay(self, record: ConfigRecord) -> None:
        """Set a config, or remove it if the value is null."""
        self.changes[record.name] = record.value

    def delete_all(self) -> None:
        """Remove all configs of the deleted resource, of this delta and of the base image."""
        self.changes.clear()
        self.finish_snapshot()


class ConfigurationsDelta:
    """`changes` has a ConfigurationDelta by resource, `ignored` those of the configs that Kafka 4.4 does not know.

    Source: org.apache.kafka.image.ConfigurationsDelta, with DefaultSupportedConfigChecker.
    """

    def __init__(self, image: ConfigurationsImage) -> None:
        self.image = image
        self.changes = _deltas(image.resource_data)
        self.ignored = _deltas(image.ignored)

    def finish_snapshot(self) -> None:
        """Remove the resources and the configs that the snapshot lacks."""
        self.changes.finish_snapshot()
        self.ignored.finish_snapshot()

    def replay(self, record: ConfigRecord) -> None:
        """Set or remove one config; its resource need not exist. Configs unknown to Kafka 4.4 change no state."""
        resource = ConfigResource(record.resource_type, record.resource_name)
        delta = self.changes[resource]
        if not is_supported(record.resource_type, record.name):
            delta = self.ignored[resource]
        delta.replay(record)

    def replay_remove_topic(self, topic_name: str) -> None:
        """Remove the topic's configs, also those set within this delta."""
        resource = ConfigResource(TOPIC_RESOURCE, topic_name)
        for deltas in (self.changes, self.ignored):
            if resource in deltas or resource in deltas.images:
                deltas[resource].delete_all()

    def apply(self) -> ConfigurationsImage:
        """The image after the changes; the same object if there are none."""
        resource_data, ignored = self.changes.apply(), self.ignored.apply()
        if resource_data is self.image.resource_data and ignored is self.image.ignored:
            return self.image
        return ConfigurationsImage(resource_data=resource_data, ignored=ignored)


def _deltas(images: HashTrieMap[ConfigResource, ConfigurationImage]) -> Deltas[ConfigResource, ConfigurationDelta]:
    return Deltas(images, ConfigurationDelta, lambda resource: ConfigurationImage(resource=resource))
