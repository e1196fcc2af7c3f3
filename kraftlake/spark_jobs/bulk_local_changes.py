"""The topics as arrays by place, and what metadata deltas make of them told to all brokers, as columns.

Nothing is done a record in Python. Imports numpy and numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.image.topics_image import TopicsImage
from kraftlake.kernels.broker_changes import HAS
from kraftlake.spark_jobs.delta_heads import DeltaHeads
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords
from kraftlake.spark_jobs.local_change_columns import ChangedPartitions, Strings, local_change_table
from kraftlake.spark_jobs.partition_places import Moved, PartitionPlaces


class BulkLocalChanges:
    """The topics after a metadata delta; `take` moves them on over further deltas."""

    def __init__(self, topics: TopicsImage) -> None:
        """Begin with an image that `fits` (see `partition_places`)."""
        self.places = PartitionPlaces(topics)

    def take(self, records: EffectiveRecords, deltas: Any, heads: DeltaHeads) -> tuple[int, pa.Table]:
        """Replay records of topics as `PartitionPlaces.replay` does: gives the first that was not, and the rows."""
        moved = self.places.replay(records, deltas)
        return moved.done, self._told(moved, heads)

    def as_new(self, heads: DeltaHeads) -> pa.Table:
        """The rows of the one metadata delta that makes the image of the empty one."""
        rows = self.places.rows
        none = np.zeros(len(rows), np.int64)
        return self._told(
            Moved(
                done=0,
                places=np.arange(len(rows)),
                deltas=none,
                before=np.zeros_like(rows),
                after=rows,
                flags=np.full(len(rows), HAS, np.uint8),
                unclean=none,
                eligible=none,
            ),
            heads,
        )

    def _told(self, moved: Moved, heads: DeltaHeads) -> pa.Table:
        self.places.learn()
        change = self.places.change
        return local_change_table(
            ChangedPartitions(
                before=moved.before,
                after=moved.after,
                flags=moved.flags,
                deltas=moved.deltas,
                topics=change.topics_at(moved.places),
                partitions=change.partitions_at(moved.places),
                base=change.base,
                state=change.state,
            ),
            heads,
            Strings(
                name=self.places.names.__getitem__,
                topic_id=self.places.ids.__getitem__,
                directories=self.places.directories,
            ),
        )
