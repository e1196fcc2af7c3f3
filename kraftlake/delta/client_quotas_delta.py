"""Changes of client quotas."""

from __future__ import annotations

from kraftlake.delta.with_changes import Deltas, EntriesDelta
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage, ClientQuotasImage
from kraftlake.records.metadata_records import ClientQuotaRecord


class ClientQuotaDelta(EntriesDelta[ClientQuotaImage, str, float]):
    """Changes of one entity's quotas by key. Source: org.apache.kafka.image.ClientQuotaDelta."""

    ENTRIES = "quotas"

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove a quota; a removed quota need not exist."""
        self.changes[record.key] = None if record.remove else record.value


class ClientQuotasDelta:
    """`changes` holds a ClientQuotaDelta by entity. Source: org.apache.kafka.image.ClientQuotasDelta."""

    def __init__(self, image: ClientQuotasImage) -> None:
        self.image = image
        self.changes = Deltas[ClientQuotaEntity, ClientQuotaDelta](
            image.entities, ClientQuotaDelta, lambda _: ClientQuotaImage.EMPTY
        )

    def finish_snapshot(self) -> None:
        """Remove the entities, and the quotas of others, that the snapshot lacks."""
        self.changes.finish_snapshot()

    def replay(self, record: ClientQuotaRecord) -> None:
        """Set or remove one quota of an entity."""
        self.changes[ClientQuotaEntity.from_record(record.entity)].replay(record)

    def apply(self) -> ClientQuotasImage:
        """The image after the changes; the same object if there are none."""
        entities = self.changes.apply()
        return self.image if entities is self.image.entities else ClientQuotasImage(entities=entities)
