"""Change of the next producer id."""

from __future__ import annotations

from kraftlake.image.producer_ids_image import ProducerIdsImage
from kraftlake.records.metadata_records import ProducerIdsRecord


class ProducerIdsDelta:
    """`next_producer_id` is that of the last record. Source: org.apache.kafka.image.ProducerIdsDelta."""

    def __init__(self, image: ProducerIdsImage) -> None:
        self.image = image
        self.next_producer_id = image.next_producer_id

    def finish_snapshot(self) -> None:
        """A no-op: allocated ids stay allocated, also if the snapshot has no record of them."""

    def replay(self, record: ProducerIdsRecord) -> None:
        """Set the next producer id after a block was allocated: the record's id."""
        self.next_producer_id = record.next_producer_id

    def apply(self) -> ProducerIdsImage:
        """The image after the change; the same object if there is none."""
        if self.next_producer_id == self.image.next_producer_id:
            return self.image
        return ProducerIdsImage(next_producer_id=self.next_producer_id)
