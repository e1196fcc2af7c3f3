"""The position of an image in the log."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs


@attrs.frozen(kw_only=True)
class MetadataProvenance:
    """The last offset that an image holds.

    `epoch` and `timestamp` (epoch milliseconds, -1: unknown) are those of the offset's batch; `batch_aligned` is true
    if the offset is the last of its batch: only such images become snapshots.
    `cluster_id` is the id of the source's cluster if it is known; equality ignores it.
    Source: org.apache.kafka.image.MetadataProvenance.
    """

    EMPTY: ClassVar[MetadataProvenance]

    offset: int
    epoch: int
    timestamp: int = -1
    batch_aligned: bool = True
    cluster_id: str | None = attrs.field(default=None, eq=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The first fields of JSON about one image: cluster, offset, epoch, and time in milliseconds."""
        return {
            "clusterId": self.cluster_id,
            "offset": self.offset,
            "epoch": self.epoch,
            "timestamp": None if self.timestamp < 0 else self.timestamp,
        }

    @property
    def snapshot_name(self) -> str:
        """`END_OFFSET-EPOCH`: Kafka's name for a snapshot of this image, without the suffix."""
        return f"{self.offset + 1:020d}-{self.epoch:010d}"


MetadataProvenance.EMPTY = MetadataProvenance(offset=-1, epoch=-1, timestamp=-1, batch_aligned=False)
