"""The next producer id to allocate."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kraftlake.image.image_part import ImagePart
from kraftlake.records.metadata_records import ProducerIdsRecord
from kraftlake.records.serde import ApiMessageAndVersion


@attrs.frozen(kw_only=True)
class ProducerIdsImage(ImagePart):
    """The first producer id of the next block, -1 before any. Source: org.apache.kafka.image.ProducerIdsImage."""

    next_producer_id: int = -1

    def write(self) -> Iterator[ApiMessageAndVersion]:
        """One record, with broker id and epoch -1."""
        if self.next_producer_id >= 0:
            record = ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=self.next_producer_id)
            yield ApiMessageAndVersion(record, 0)
