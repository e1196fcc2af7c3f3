"""The rows of a step of a log whose topics are dealt out to shards. Imports numpy.

A shard makes the rows of its topics and says by how much they change the cluster's counts; after the shards the rows of
all else are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from kraftlake.image.provenance import MetadataProvenance
from kraftlake.replay.log.delta_chunk import LogBegin, ReplayState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.writers import PartitionHistoryWriter
from kraftlake.tables.metrics.cluster_metrics import ClusterMetricsWriter
from kraftlake.tables.metrics.count_changes import CountChanges
from kraftlake.tables.shards.replayed import refuse_partitions

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart
    from kraftlake.tables.lake_table import LakeTable


class ShardStep:
    """A shard's topics on their way from one offset of a log to another.

    `begins_with` makes its topics at the begin of the empty image; the writers have the rows.
    """

    def __init__(self, state: ReplayState, writers: Sequence[ChangesWriter], *, is_load: bool = False) -> None:
        """Begin with the state at an offset; `is_load` as in LogBegin.

        `writers` are those of the tables that are `of_topics`.
        """
        self.replay = LogReplay(of_shard=True)
        self.replay.go_on(state)
        self.begins_with = CountChanges.of_topics(state.image.topics).changing()
        self._writers = writers
        self._counts: list[CountChanges] = []
        begin = LogBegin(image=state.image, is_load=is_load)
        for writer in writers:
            writer.open(self.replay, begin)

    def take(self, parts: Iterable[LogPart]) -> None:
        """Take records that follow those before; raises as `LogReplay.take_parts`."""
        for chunk in self.replay.take_parts(parts):
            of_topics = attrs.evolve(chunk, others=())  # an OthersStep says what else has changed
            for writer in self._writers:
                writer.take_deltas(chunk if isinstance(writer, PartitionHistoryWriter) else of_topics)
            self._counts.append(CountChanges.of_chunk(chunk).changing())

    @property
    def state(self) -> ReplayState:
        """The state at the end, each partition since when its row in `partition_history/` begins."""
        state = self.replay.state
        for writer in self._writers:
            if isinstance(writer, PartitionHistoryWriter):
                state = writer.begun(state)
        return state

    def counts(self) -> CountChanges:
        """The deltas that change a count of topics or partitions, or have an election."""
        return CountChanges.joined(self._counts)


class OthersStep:
    """The records of a log that are of no shard, on their way from one offset of a log to another."""

    def __init__(
        self,
        state: ReplayState,
        writers: Sequence[ChangesWriter],
        tables: Sequence[LakeTable],
        shards: Sequence[CountChanges] = (),
        *,
        is_load: bool = False,
    ) -> None:
        """Begin with the state at an offset; `tables` are those of the writers.

        `shards` make the shards' topics there of the empty image. `is_load` as in LogBegin.
        """
        self._replay = LogReplay()
        self._replay.go_on(state)
        self._writers = writers
        begin = LogBegin(
            image=state.image,
            is_load=is_load,
            any_delta=state.image.provenance.epoch >= 0,
            in_shards=True,
            quorum=state.delta_quorum,
            newest_quorum=state.quorum,
        )
        for writer, table in zip(writers, tables, strict=True):
            if isinstance(writer, ClusterMetricsWriter):
                writer.of_shards = CountChanges.joined(shards)
            writer.open(self._replay, begin, table)

    def take(self, parts: Iterable[LogPart], counts: Sequence[CountChanges]) -> None:
        """Take the records of a step, which follow those before, and by how much each shard changed the counts.

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
                merged = CountChanges.joined([*(CountChanges.none_in(chunk.boundaries) for chunk in chunks), *counts])
                others = [other for chunk in chunks for other in chunk.others]
                writer.take_counts(merged, others)

    def state(self, at: MetadataProvenance) -> ReplayState:
        """The state after an offset, which is that of the last batch that was taken."""
        return self._replay.state.ending(at)
