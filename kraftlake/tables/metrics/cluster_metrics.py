"""The Delta table `cluster_metrics/`: Kafka's controller counts, a row for each offset from which on they are others.

The counts at any offset are those of the last row at or before it; `counts_by_minute` gives them for each minute.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import pyarrow as pa

from kraftlake.image import ClusterCounts, MetadataImage, count_cluster
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.delta_rows_writer import DeltaRowsWriter
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.history.partition_states import TOPIC_KINDS
from kraftlake.tables.lake_table import TableDescription
from kraftlake.tables.metrics.cluster_count_states import BROKER_KINDS, ClusterCountStates, Counted

COUNTS: Final = tuple(field.name for field in attrs.fields(ClusterCounts))

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
        "Kafka's PreferredReplicaImbalanceCount: partitions that another than their first replica leads, or nobody",
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

CLUSTER_METRICS = TableDescription(
    "cluster_metrics", "Kafka's controller counts from each offset on at which they changed.", COLUMNS
)


class ClusterMetricsWriter(DeltaRowsWriter):
    """Makes the rows of `cluster_metrics/`: a log's first delta gets one, then each that counts.

    Where a log begins with nothing but no-op records its first delta is one like all others.
    """

    description = CLUSTER_METRICS
    kinds = (*TOPIC_KINDS, *BROKER_KINDS)
    waits = True

    def __init__(self, *, bulk: bool | None = None) -> None:
        """`bulk` says whether to use compiled code, None: where there is enough to do for it."""
        super().__init__()
        self._bulk = bulk
        self._states = ClusterCountStates(bulk=bulk)

    def take_rows(self, rows: pa.Table) -> None:
        """Count the rows' metadata deltas."""
        if self.waits and rows.column("offset")[0].as_py() == 0:
            first = rows.column("batch").to_numpy() == 0
            self.waits = bool((rows.column("api_key").to_numpy()[first] != NoOpRecord.API_KEY).any())
        super().take_rows(rows)

    def _go_on(self, image: MetadataImage, *, told: bool) -> None:
        self.waits = not told
        self._states = ClusterCountStates(image, bulk=self._bulk)

    def _tell_load(self, image: MetadataImage, heads: DeltaBoundaries) -> None:
        self._add(heads, Counted(0, count_cluster(image), 0, 0))

    def _tell(self, records: EffectiveRecords, heads: DeltaBoundaries) -> None:
        before = self._states.counts
        for counted in self._states.take(records, heads):
            if self.waits and counted.delta > 0:
                self._add(heads, Counted(0, before, 0, 0))
            self.waits = False
            self._add(heads, counted)
        if self.waits and len(heads.offsets):
            self.waits = False
            self._add(heads, Counted(0, before, 0, 0))

    def _add(self, heads: DeltaBoundaries, counted: Counted) -> None:
        values: tuple[Any, ...] = attrs.astuple(counted.counts)
        self.rows.add((*heads.row(counted.delta), *values, counted.unclean, counted.eligible))
