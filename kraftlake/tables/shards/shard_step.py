"""What one shard makes of a step of a log: the rows of its topics, and by how much they change the cluster's counts.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.image import ClusterCounts, MetadataImage, MetadataProvenance, count_cluster
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.replay.log.delta_chunk import LogBegin, TopicsState
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.log.shard_records import ShardRecords
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.shards.count_changes import CountChanges


class ShardStep:
    """A shard's topics on their way from one offset of a log to another.

    `begins_with` are the counts of its topics at the begin; the writers have the rows.
    """

    def __init__(
        self,
        state: TopicsState,
        writers: Sequence[ChangesWriter],
        at: MetadataProvenance,
        *,
        is_load: bool = False,
        bulk: bool = True,
    ) -> None:
        """Begin with the state at an offset; `is_load` as in LogBegin. `bulk` is that of PartitionStore.

        `writers` are those of the tables that are `of_topics`.
        """
        image = MetadataImage(topics=state.topics, provenance=at)
        begin = LogBegin(image=image, is_load=is_load)
        self._deltas = LogReplay(bulk=bulk, of_shard=True)
        self._deltas.go_on(state, at, QuorumState())
        self._writers = writers
        for writer in writers:
            writer.open(self._deltas, begin)
        self._counts: list[CountChanges] = []
        self.begins_with: ClusterCounts = count_cluster(image)

    def take(self, records: ShardRecords) -> None:
        """Take records that follow those before.

        Raises ReplayError, UnknownRecordError or CorruptDataError, naming the offset, for a record that contradicts
        what is there, or can't be replayed.
        """
        for chunk in self._deltas.take_parts(records.parts()):
            for writer in self._writers:
                writer.take_deltas(chunk)
            self._counts.append(CountChanges.of_chunk(chunk))

    def counts(self) -> CountChanges:
        """The deltas that change a count of topics or partitions, or have an election."""
        return CountChanges.joined(self._counts)

    def state(self) -> TopicsState:
        """The state at the end."""
        return self._deltas.state
