"""Changes of client quotas."""

from __future__ import annotations

from kraftlake.delta.with_changes import drop_missing, with_changes
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage, ClientQuotasImage
from kraftlake.records.metadata_records import ClientQuotaRecord


class ClientQuotaDelta:
    """Changes of one entity: `changes` holds the new value by quota key, None where it was removed."""

    def __init__(self, image: ClientQuotaImage) -> None:
        self.image = image
        self.changes: dict[str, float | None] = {}

    def finish_snapshot(self) -> None:
        """Remove the quotas that the snapshot lacks."""
        drop_missing(self.image.quotas, self.changes)

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove a quota; a removed quota need not exist."""
        self.changes[record.key] = None if record.remove else record.value

    def apply(self) -> ClientQuotaImage:
        """The image after the changes; the same object if there are none."""
        quotas = with_changes(self.image.quotas, self.changes)
        return self.image if quotas is self.image.quotas else ClientQuotaImage(quotas)


class ClientQuotasDelta:
    """`changes` holds a ClientQuotaDelta by entity. Source: org.apache.kafka.image.ClientQuotasDelta."""

    def __init__(self, image: ClientQuotasImage) -> None:
        self.image = image
        self.changes: dict[ClientQuotaEntity, ClientQuotaDelta] = {}

    def finish_snapshot(self) -> None:
        """Remove the entities, and the quotas of others, that the snapshot lacks."""
        for entity in self.image.entities:
            self._delta(entity).finish_snapshot()

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove one quota of an entity."""
        self._delta(ClientQuotaEntity.from_record(record.entity)).replay(record)

    def apply(self) -> ClientQuotasImage:
        """The image after the changes; the same object if there are none."""
        images = {entity: delta.apply() for entity, delta in self.changes.items()}
        kept = {entity: None if image.is_empty() else image for entity, image in images.items()}
        entities = with_changes(self.image.entities, kept)
        return self.image if entities is self.image.entities else ClientQuotasImage(entities=entities)

    def _delta(self, entity: ClientQuotaEntity) -> ClientQuotaDelta:
        delta = self.changes.get(entity)
        if delta is None:
            image = self.image.entities.get(entity) or ClientQuotaImage.EMPTY
            delta = self.changes[entity] = ClientQuotaDelta(image)
        return delta
