"""The quotas of users, client ids and addresses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs
from rpds import HashTrieMap

from kraftlake.image.image_part import ImagePart
from kraftlake.image.short_repr import short_repr
from kraftlake.records.metadata_records import ClientQuotaRecord, EntityData
from kraftlake.records.serde import ApiMessageAndVersion


@attrs.frozen
class ClientQuotaEntity:
    """The entity of a quota: (type, name) pairs sorted by type; the name None is the type's default.

    Types are `user`, `client-id` and `ip`; user and client-id can be combined.
    """

    entries: tuple[tuple[str, str | None], ...]

    @classmethod
    def from_record(cls, entity: tuple[EntityData, ...]) -> ClientQuotaEntity:
        """The entity of a ClientQuotaRecord; of a type that occurs twice, the last name is used."""
        return cls(tuple(sorted({data.entity_type: data.entity_name for data in entity}.items())))

    @property
    def text(self) -> str:
        """The entity as compact JSON: the order of entities in listings."""
        return json.dumps(dict(self.entries), ensure_ascii=False, separators=(",", ":"))


@attrs.frozen
class ClientQuotaImage(ImagePart):
    """The quotas of one entity: values by quota key. Source: org.apache.kafka.image.ClientQuotaImage."""

    quotas: HashTrieMap[str, float] = HashTrieMap()

    def write(self, entity: ClientQuotaEntity) -> Iterator[ApiMessageAndVersion]:
        """The records of the quotas, by key."""
        data = tuple(EntityData(entity_type=type_, entity_name=name) for type_, name in entity.entries)
        for key, value in sorted(self.quotas.items()):
            yield ApiMessageAndVersion(ClientQuotaRecord(entity=data, key=key, value=value), 0)


@attrs.frozen(kw_only=True)
class ClientQuotasImage(ImagePart):
    """Quotas by entity; entities without quotas are absent. Source: org.apache.kafka.image.ClientQuotasImage."""

    entities: HashTrieMap[ClientQuotaEntity, ClientQuotaImage] = HashTrieMap()

    def __repr__(self) -> str:
        return short_repr(self, entities=len(self.entities))

    def in_order(self) -> list[tuple[ClientQuotaEntity, ClientQuotaImage]]:
        """The entities by their text."""
        return sorted(self.entities.items(), key=lambda item: item[0].text)

    def write(self) -> Iterator[ApiMessageAndVersion]:
        """The records of the entities, by their text."""
        for entity, image in self.in_order():
            yield from image.write(entity)
