"""What one shard makes of a step of a log: the rows of its topics, and by how much they change the cluster's counts.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import attrs

from kraftlake.image.topics.row_queries import count_offline_and_imbalanced
from kraftlake.replay.log.delta_chunk import LogBegin, ReplayState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.writers import PartitionHistoryWriter
from kraftlake.tables.shards.count_changes import CountChanges

if TYPE_CHECKING:
    from kraftlake.replay.log.effective_records import LogPart


class ShardStep:
    """A shard's topics on their way from one offset of a log to another.

    `begins_with` are the counts of its topics at the begin, in the order of ClusterCounts; the writers have the rows.
    """

    def __init__(self, state: ReplayState, writers: Sequence[ChangesWriter], *, is_load: bool = False) -> None:
        """Begin with the state at an offset; `is_load` as in LogBegin.

        `writers` are those of the tables that are `of_topics`.
        """
        self.replay = LogReplay(of_shard=True)
        self.replay.go_on(state)
        topics = state.image.topics
        self.begins_with = [topics.topic_count, topics.partition_count, *count_offline_and_imbalanced(topics.rows())]
        self._writers = writers
        self._counts: list[CountChanges] = []
        begin = LogBegin(image=state.image, is_load=is_load)
        for writer in writers:
            writer.open(self.replay, begin)

    def take(self, parts: Iterable[LogPart]) -> None:
        """Take records that follow those before; raises as `LogReplay.take_parts`."""
        for chunk in self.replay.take_parts(parts):
            of_topics = attrs.evolve(chunk, others=())  # the driver says what else has changed
            for writer in self._writers:
                writer.take_deltas(chunk if isinstance(writer, PartitionHistoryWriter) else of_topics)
            self._counts.append(CountChanges.of_chunk(chunk))

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
