"""What metadata deltas change of the counts of topics and partitions, by places. Imports numpy and numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.records.metadata_records import RemoveTopicRecord, TopicRecord
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.changes.partition_store import PartitionPlaces


def count_changes(places: PartitionPlaces, records: EffectiveRecords, deltas: Any, changes: Any) -> int:
    """Replay records of topics as `PartitionPlaces.replay` does, and count what that changes.

    `changes` (int64[d, 6]) gets for each delta by how much the counts of topics, partitions, offline and imbalanced
    ones grow, and how many unclean elections there were and from the eligible leader replicas. Gives the first record
    that was not replayed.
    """
    done = places.count(records, deltas, changes[:, 1:])
    kinds = records.kinds[:done]
    for kind, sign in ((TopicRecord.API_KEY, 1), (RemoveTopicRecord.API_KEY, -1)):
        np.add.at(changes[:, 0], deltas[np.flatnonzero(kinds == kind)], sign)
    return done
