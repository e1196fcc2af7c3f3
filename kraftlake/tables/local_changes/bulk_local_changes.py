"""What metadata deltas make of topics that are kept by places told to all brokers, as columns.

Nothing is done a record in Python. Imports numpy and numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.columns.broker_changes import HAS
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.changes.partition_store import Moved, PartitionPlaces
from kraftlake.tables.local_changes.columns import ChangedPartitions, Strings, local_change_table


def bulk_local_changes(
    places: PartitionPlaces, records: EffectiveRecords, deltas: Any, heads: DeltaBoundaries
) -> tuple[int, pa.Table]:
    """Replay records of topics as `PartitionPlaces.replay` does: gives the first that was not, and the rows."""
    moved = places.replay(records, deltas)
    return moved.done, _told(places, moved, heads)


def changes_as_new(topics: TopicsImage, heads: DeltaBoundaries) -> pa.Table:
    """The rows of the one metadata delta that makes an image that `fits` of the empty one."""
    places = PartitionPlaces(topics)
    none = np.zeros(len(places.rows), np.int64)
    moved = Moved(
        done=0,
        places=np.arange(len(none)),
        deltas=none,
        before=np.zeros_like(places.rows),
        after=places.rows,
        flags=np.full(len(none), HAS, np.uint8),
        unclean=none,
        eligible=none,
        removals=np.empty((0, 2), np.int64),
        first_topic=places.change.topic_total,
    )
    return _told(places, moved, heads)


def _told(places: PartitionPlaces, moved: Moved, heads: DeltaBoundaries) -> pa.Table:
    change, strings = places.change, places.strings
    strings.learn()
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
            names=lambda topics: strings.names.take(pa.array(topics)),
            ids=lambda topics: strings.ids.take(pa.array(topics)),
            directories=strings.directories,
        ),
    )
