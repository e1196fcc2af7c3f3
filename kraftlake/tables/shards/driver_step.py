"""What the driver makes of a log whose topics are dealt out to shards: the rows of all else. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from kraftlake.image import ClusterCounts, MetadataImage, MetadataProvenance, count_cluster
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.delta_chunk import LogBegin, TopicsState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.metrics.cluster_metrics import ClusterMetricsWriter
from kraftlake.tables.shards.count_changes import CountChanges

if TYPE_CHECKING:
    from kraftlake.replay.log.shard_records import ShardRecords
    from kraftlake.tables.lake_table import LakeTable


NO_SHARD: Final = "a record of a topic has a frame that Kafka does not write, so no shard has taken it."
"""What is wrong with a record of a partition that comes to the driver."""


@attrs.frozen(kw_only=True, eq=False)
class DriverState:
    """All of a cluster but its partitions: an `image` whose topics have none, and the state of the quorum.

    `open_topics` are these topics, with what waits for the end of a transaction. `epoch` is that of the last delta (-1
    for none).
    """

    image: MetadataImage = MetadataImage.EMPTY
    quorum: QuorumState = attrs.field(factory=QuorumState)
    open_topics: TopicsState = attrs.field(factory=TopicsState.of_image)
    epoch: int = -1

    @property
    def open_since(self) -> int | None:
        """The offset of the BeginTransactionRecord of the transaction that is open, None without one."""
        return self.open_topics.open_since


class DriverStep:
    """The records of a log that are of no shard, on their way from one offset of a log to another."""

    def __init__(
        self,
        state: DriverState,
        writers: Sequence[ChangesWriter],
        tables: Sequence[LakeTable],
        shards: Iterable[ClusterCounts] = (),
        *,
        is_load: bool = False,
        bulk: bool = True,
    ) -> None:
        """Begin with the state at an offset; `tables` are those of the writers, `shards` the counts of
        the shards' topics there.

        `is_load` as in LogBegin; `bulk` is that of PartitionStore.
        """
        at = attrs.evolve(state.image.provenance, epoch=state.epoch)
        self._deltas = LogReplay(bulk=bulk)
        self._deltas.go_on(state.open_topics, at, state.quorum, state.image)
        begin = LogBegin(
            image=attrs.evolve(state.image, provenance=at),
            is_load=is_load,
            any_delta=state.epoch >= 0,
            counts=_summed(count_cluster(attrs.evolve(state.image, topics=TopicsState.of_image().topics)), shards),
        )
        self._writers = writers
        for writer, table in zip(writers, tables, strict=True):
            writer.open(self._deltas, begin, table)

    def take(self, records: Iterable[ShardRecords], counts: CountChanges) -> None:
        """Take the records of a step, which follow those before, and by how much the shards changed the counts.

        Raises ReplayError, UnknownRecordError or CorruptDataError, naming the offset, for a record that contradicts
        what is there, or can't be replayed.
        """
        parts = [part for each in records for part in each.parts()]
        chunks = [*self._deltas.take_parts(parts)]
        if self._deltas.store.count:
            raise CorruptDataError(NO_SHARD)
        for chunk in chunks:
            for writer in self._writers:
                if not isinstance(writer, ClusterMetricsWriter):
                    writer.take_deltas(chunk)
        for writer in self._writers:
            if isinstance(writer, ClusterMetricsWriter):
                merged = CountChanges.joined([*(CountChanges.none_in(chunk.boundaries) for chunk in chunks), counts])
                others = [other for chunk in chunks for other in chunk.others]
                writer.take_counts(merged.boundaries, merged.changes, others)

    def state(self, at: MetadataProvenance) -> DriverState:
        """The state after an offset, which is that of the last batch that was taken."""
        deltas, image = self._deltas, attrs.evolve(self._deltas.image, provenance=at)
        return DriverState(image=image, quorum=deltas.quorum, open_topics=deltas.state, epoch=deltas.provenance.epoch)


def _summed(brokers: ClusterCounts, shards: Iterable[ClusterCounts]) -> ClusterCounts:
    """The counts of a cluster: of its brokers, and of the topics of all shards."""
    names = [field.name for field in attrs.fields(ClusterCounts)]
    of_all = [brokers, *shards]
    return ClusterCounts(**{name: sum(getattr(each, name) for each in of_all) for name in names})
