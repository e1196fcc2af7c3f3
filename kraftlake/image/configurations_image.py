"""The dynamic configs of topics, brokers and other resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs
from rpds import HashTrieMap

from kraftlake.image.image_part import ImagePart
from kraftlake.image.kafka_names import CONFIG_RESOURCES
from kraftlake.image.short_repr import short_repr
from kraftlake.records.metadata_records import ConfigRecord
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.runtime.words import in_words, shown

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
_NAMED: Final = 3
_LONGEST_NAME: Final = 60


@attrs.frozen(order=True)
class ConfigResource:
    """The owner of configs: a type (a key of CONFIG_RESOURCES) and a name, empty for the type's default."""

    type: int
    name: str

    @property
    def type_name(self) -> str:
        """`TOPIC`, `BROKER`, …; `UNKNOWN(n)` for a type that Kafka does not know."""
        return CONFIG_RESOURCES.get(self.type, f"UNKNOWN({self.type})")


@attrs.frozen(kw_only=True)
class ConfigurationImage:
    """The configs of one resource: values by name. Source: org.apache.kafka.image.ConfigurationImage."""

    resource: ConfigResource
    data: HashTrieMap[str, str] = attrs.field(default=HashTrieMap(), repr=False)

    def is_empty(self) -> bool:
        """Whether nothing is set."""
        return not self.data

    def write(self) -> Iterator[ApiMessageAndVersion]:
        """The records of the configs, by name."""
        for name, value in sorted(self.data.items()):
            record = ConfigRecord(
                resource_type=self.resource.type, resource_name=self.resource.name, name=name, value=value
            )
            yield ApiMessageAndVersion(record, 0)


@attrs.frozen(kw_only=True)
class ConfigurationsImage(ImagePart):
    """Configs by resource; resources without configs are absent. Source: org.apache.kafka.image.ConfigurationsImage.

    `ignored` has the configs that the records set and Kafka 4.4 does not know. They are not a part of the state: they
    are neither compared nor written.
    """

    resource_data: HashTrieMap[ConfigResource, ConfigurationImage] = HashTrieMap()
    ignored: HashTrieMap[ConfigResource, ConfigurationImage] = attrs.field(default=HashTrieMap(), eq=False, repr=False)

    def __repr__(self) -> str:
        return short_repr(self, resources=len(self.resource_data))

    def config_map(self, resource: ConfigResource) -> Mapping[str, str]:
        """The configs set for a resource: values by config name."""
        image = self.resource_data.get(resource)
        return {} if image is None else image.data

    @property
    def ignored_words(self) -> str:
        """The ignored configs with their resources: `x of topics a and b; y of group g`; empty for none."""
        owners: dict[tuple[str, str], list[str]] = {}
        for resource, image in sorted(self.ignored.items()):
            for name in sorted(image.data):
                owners.setdefault((name, resource.type_name), []).append(shown(resource.name, _LONGEST_NAME))
        return "; ".join(
            f"{shown(name, _LONGEST_NAME)} of {kind.lower().replace('_', ' ')}{'s' if len(named) > 1 else ''} "
            f"{in_words(named if len(named) <= _NAMED else [*named[:_NAMED], f'{len(named) - _NAMED:,} more'])}"
            for (name, kind), named in owners.items()
        )

    def write(self) -> Iterator[ApiMessageAndVersion]:
        """The records of the resources, by type and name."""
        for _, image in sorted(self.resource_data.items()):
            yield from image.write()
