"""The Delta table `cluster_metrics/`: counts of a cluster, a row for each offset at which one of them changes.

The counts at any offset are those of the last row at or before it; `counts_by_minute` returns them for each minute.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kraftlake.image.cluster_health import HEALTH_COUNTS
from kraftlake.replay.log.delta_chunk import DeltaBoundaries, DeltaChunk, LogBegin
from kraftlake.replay.log.other_records import OtherChange
from kraftlake.tables.changes_writer import ChangesWriter
from kraftlake.tables.history.history_columns import delta_columns
from kraftlake.tables.lake_table import TableDescription
from kraftlake.tables.metrics.cluster_counts import ClusterCounter
from kraftlake.tables.metrics.count_changes import CountChanges

COLUMNS: Final = (
    (
        pa.field("offset", pa.int64(), nullable=False),
        "the last offset of the metadata delta from which on these are the counts",
    ),
    (pa.field("epoch", pa.int32(), nullable=False), "the epoch of that offset's batch"),
    (
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        "the time of that offset's batch by its controller's clock; null where the batch has none",
    ),
    (pa.field("active_broker_count", pa.int32(), nullable=False), "Kafka's ActiveBrokerCount: brokers not fenced"),
    (pa.field("fenced_broker_count", pa.int32(), nullable=False), "Kafka's FencedBrokerCount: brokers fenced"),
    (
        pa.field("controlled_shutdown_broker_count", pa.int32(), nullable=False),
        "brokers in controlled shutdown, fenced or not",
    ),
    (pa.field("global_topic_count", pa.int32(), nullable=False), "Kafka's GlobalTopicCount"),
    (pa.field("global_partition_count", pa.int32(), nullable=False), "Kafka's GlobalPartitionCount"),
    (
        pa.field("offline_partitions_count", pa.int32(), nullable=False),
        "Kafka's OfflinePartitionsCount: partitions without a leader",
    ),
    (
        pa.field("preferred_replica_imbalance_count", pa.int32(), nullable=False),
        "Kafka's PreferredReplicaImbalanceCount: partitions without a leader, or whose leader is not the first replica",
    ),
    *(
        (pa.field(name, pa.int32(), nullable=False), meaning[0].lower() + meaning[1:].rstrip("."))
        for name, meaning in HEALTH_COUNTS.items()
    ),
    (
        pa.field("unclean_leader_elections", pa.int32(), nullable=False),
        "unclean leader elections in this metadata delta (not since a start, so that they can be summed)",
    ),
    (
        pa.field("elr_leader_elections", pa.int32(), nullable=False),
        "elections from the eligible leader replicas in this metadata delta",
    ),
)

_COUNTED: Final = tuple(field.name for field, _ in COLUMNS[3:])

CLUSTER_METRICS = TableDescription(
    "cluster_metrics",
    "Kafka's controller counts, and those of what is not as it should be, from each offset on at which one changed.",
    COLUMNS,
)


class ClusterMetricsWriter(ChangesWriter):
    """Makes the rows of `cluster_metrics/`: one for a log's first delta, then one for each that changes a count.

    The first delta of a log that begins with no-op records alone gets no row.
    """

    description = CLUSTER_METRICS
    of_shards: CountChanges | None = None
    """What makes the topics of the begin where its image has none: set before `open`."""

    def begin_deltas(self, begin: LogBegin) -> None:
        """Initialize at the end of the table; the rows of a load are added."""
        self._waits = not (begin.any_delta or begin.is_load)
        """Whether the first delta is yet to come."""
        self._counter = ClusterCounter(begin.image, self.of_shards)
        if begin.is_load:
            self._add(begin.boundaries, np.zeros(1, np.int64), np.append(self._counter.counts, (0, 0))[None])

    def take_deltas(self, chunk: DeltaChunk) -> None:
        """Add the rows of deltas."""
        self.take_counts(CountChanges.of_chunk(chunk), chunk.others)

    def take_counts(self, changes: CountChanges, others: Iterable[OtherChange]) -> None:
        """Add the rows of deltas; the arguments are those of `ClusterCounter.take`."""
        if len(boundaries := changes.boundaries):
            first = self._waits and not boundaries.noop[0]
            self._waits = False
            self._add(boundaries, *self._counter.take(changes, others, with_first=first))

    def _add(self, boundaries: DeltaBoundaries, deltas: Any, counts: Any) -> None:
        """Add the rows of deltas (int64[n], by number), with the counts and the elections of each."""
        columns = delta_columns(boundaries, deltas) | dict(zip(_COUNTED, counts.T, strict=True))
        self.rows.add_table(pa.table(columns))
