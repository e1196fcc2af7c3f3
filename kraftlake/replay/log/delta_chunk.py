"""The results of a replay of the log: whole metadata deltas as columns, and their begin. Imports numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from kraftlake.image.cluster_counts import ClusterCounts
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.delta_boundaries import DeltaBoundaries
from kraftlake.replay.log.effective_records import NO_RECORDS, EffectiveRecords
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.replay.log.partition_changes import PartitionChanges, PartitionRows


@attrs.frozen(kw_only=True, eq=False)
class DeltaChunk:
    """Whole metadata deltas that follow each other: what a table makes its rows of. Never modified.

    Delta i ends at `boundaries.offsets[i]`. `records` are those that take effect, of all kinds; `deltas` (int64,
    ascending) are the numbers of their deltas. `partitions` are the changes that the records of topics make; the
    records' numbers in it are those of `records`. `others` are the changes of all other parts, in order;
    where one of them changes what tables say of partitions, a broker's rack, `partitions_after` are all partitions
    after the deltas.
    """

    boundaries: DeltaBoundaries
    records: EffectiveRecords
    deltas: Any
    partitions: PartitionChanges
    others: Sequence[OtherChange] = ()
    partitions_after: PartitionRows | None = None

    def in_front_of(self, delta: int) -> DeltaChunk:
        """The deltas in front of one, by number."""
        last = int(np.searchsorted(self.deltas, delta))
        return DeltaChunk(
            boundaries=self.boundaries.part(0, delta),
            records=self.records.part(0, last),
            deltas=self.deltas[:last],
            partitions=self.partitions.in_front_of(delta),
            others=[change for change in self.others if change.delta < delta],
            partitions_after=self.partitions_after,
        )


@attrs.frozen(kw_only=True, eq=False)
class LogBegin:
    """The begin of a table's next rows: the `image` that it covers.

    `is_load`: it covers nothing, and the image is the snapshot that a log begins with which starts above 0: loading it
    is the first delta. `any_delta`: the log has at least one delta up to there.

    `counts` are those of the cluster where the image has topics without partitions: these are in shards, which make the
    rows of topics and partitions.
    """

    image: MetadataImage = MetadataImage.EMPTY
    is_load: bool = False
    any_delta: bool = False
    counts: ClusterCounts | None = None

    @property
    def epoch(self) -> int:
        """The epoch there, -1 for none."""
        return self.image.provenance.epoch

    @property
    def boundaries(self) -> DeltaBoundaries:
        """The delta that ends here."""
        at = self.image.provenance
        return DeltaBoundaries.single(at.offset, at.epoch, at.timestamp)


@attrs.frozen(kw_only=True, eq=False)
class ReplayState:
    """A replay after some deltas, which another one goes on from.

    `image` is that after the last delta. `since` and `since_times` (int64; epoch ms, -1 for none) are where the state
    of each partition began, in the order of `image.topics.rows()`. `open_since` is the offset of the
    BeginTransactionRecord of the metadata transaction that is open, None without one; `held` are its records.
    """

    image: MetadataImage = MetadataImage.EMPTY
    quorum: QuorumState = attrs.field(factory=QuorumState)
    since: Any = attrs.field(factory=lambda: np.empty(0, np.int64))
    since_times: Any = attrs.field(factory=lambda: np.empty(0, np.int64))
    open_since: int | None = None
    held: EffectiveRecords = NO_RECORDS

    def ending(self, at: MetadataProvenance) -> ReplayState:
        """The same at a later offset, up to which the log has no other records of it.

        Inside of a metadata transaction the epoch stays that of the last delta.
        """
        epoch = at.epoch if self.open_since is None else self.image.provenance.epoch
        return attrs.evolve(self, image=attrs.evolve(self.image, provenance=attrs.evolve(at, epoch=epoch)))

    def begun(self, at: MetadataProvenance) -> ReplayState:
        """The same as far as the image at an offset alone says: all partitions are so since then."""
        count = self.image.topics.partition_count
        return attrs.evolve(
            self,
            since=np.full(count, at.offset, np.int64),
            since_times=np.full(count, at.timestamp, np.int64),
        )
