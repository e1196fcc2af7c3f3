"""What the driver makes of a log whose topics are dealt out to shards: the rows of all else. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from kraftlake.image import ClusterCounts, MetadataProvenance, TopicsImage, count_cluster
from kraftlake.replay.log.delta_chunk import LogBegin, ReplayState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.metrics.cluster_counts import BROKERS
from kraftlake.tables.metrics.cluster_metrics import ClusterMetricsWriter
from kraftlake.tables.shards.count_changes import CountChanges
from kraftlake.tables.shards.replayed import refuse_partitions

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart
    from kraftlake.tables.lake_table import LakeTable


class DriverStep:
    """The records of a log that are of no shard, on their way from one offset of a log to another."""

    def __init__(
        self,
        state: ReplayState,
        writers: Sequence[ChangesWriter],
        tables: Sequence[LakeTable],
        shards: Iterable[Sequence[int]] = (),
        *,
        is_load: bool = False,
    ) -> None:
        """Begin with the state at an offset; `tables` are those of the writers.

        `shards` are the counts of the shards' topics there. `is_load` as in LogBegin.
        """
        self._replay = LogReplay()
        self._replay.go_on(state)
        self._writers = writers
        counts = attrs.asdict(count_cluster(attrs.evolve(state.image, topics=TopicsImage.EMPTY)))
        counts |= dict(zip([*counts][BROKERS:], map(sum, zip(*shards, strict=True)), strict=False))
        begin = LogBegin(
            image=state.image,
            is_load=is_load,
            any_delta=state.image.provenance.epoch >= 0,
            counts=ClusterCounts(**counts),
        )
        for writer, table in zip(writers, tables, strict=True):
            writer.open(self._replay, begin, table)

    def take(self, parts: Iterable[LogPart], counts: CountChanges) -> None:
        """Take the records of a step, which follow those before, and by how much the shards changed the counts.

        Raises as `LogReplay.take_parts`.
        """
        chunks = [*self._replay.take_parts(parts)]
        refuse_partitions(self._replay)
        for chunk in chunks:
            for writer in self._writers:
                if not isinstance(writer, ClusterMetricsWriter):
                    writer.take_deltas(chunk)
        for writer in self._writers:
            if isinstance(writer, ClusterMetricsWriter):
                merged = CountChanges.joined([*(CountChanges.none_in(chunk.boundaries) for chunk in chunks), counts])
                others = [other for chunk in chunks for other in chunk.others]
                writer.take_counts(merged.boundaries, merged.changes, others)

    def state(self, at: MetadataProvenance) -> ReplayState:
        """The state after an offset, which is that of the last batch that was taken."""
        return self._replay.state.ending(at)
