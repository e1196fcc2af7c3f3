"""The Delta table `cluster_metrics/`: Kafka's controller counts, a row for each offset from which on they are others.

The counts at any offset are those of the last row at or before it; `counts_by_minute` gives them for each minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from kraftlake.delta import MetadataDelta
from kraftlake.image import ClusterCounts, MetadataImage, count_cluster
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.spark_jobs.lake_table import TableDescription
from kraftlake.spark_jobs.table_writer import Published, TableWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_COUNTS: Final = tuple(field.name for field in attrs.fields(ClusterCounts))

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


class ClusterMetricsWriter(TableWriter):
    """Makes the rows of `cluster_metrics/`: the first change that is published gets one, then each that counts."""

    description = CLUSTER_METRICS

    def __init__(self) -> None:
        super().__init__()
        self._metrics = ControllerMetadataMetrics()
        self._is_new = True

    def begin(self, image: MetadataImage) -> None:
        """Count the image that the table ends with."""
        self._metrics.counts = count_cluster(image)
        self._is_new = image.provenance.offset < 0

    def publish(self, change: Published) -> None:
        """Add a row where a count is another one than before."""
        delta = change.delta
        if delta.topics_delta is None and delta.cluster_delta is None and not self._is_new:
            return
        counts = self._metrics.counts
        unclean, eligible = self._count(delta, change)
        if self._metrics.counts != counts or unclean or eligible or self._is_new:
            values: tuple[Any, ...] = attrs.astuple(self._metrics.counts)
            self.rows.add((change.offset, change.epoch, change.timestamp, *values, unclean, eligible))
        self._is_new = False

    def _count(self, delta: MetadataDelta, change: Published) -> tuple[int, int]:
        """Move the counts on; returns the unclean elections and those from the ELR in the change."""
        rows = None if delta.topics_delta is None else delta.topics_delta.changed_rows()
        if rows is not None:
            self._metrics.counts = count_cluster(change.image)
            return rows.unclean_elections, rows.elr_elections
        metrics = self._metrics
        before = (metrics.unclean_leader_elections, metrics.elections_from_eligible_leader_replicas)
        metrics.on_metadata_update(delta, change.image, change.manifest)
        after = (metrics.unclean_leader_elections, metrics.elections_from_eligible_leader_replicas)
        return after[0] - before[0], after[1] - before[1]


def counts_by_minute(spark: SparkSession, lake: str | Path) -> DataFrame:
    """The counts at the end of each minute from the table's first to its last one, also where nothing changed.

    Columns: `minute` (timestamp, its beginning), then the counts as in the table and the elections of that minute
    summed. Rows without a time are left out. Raises what Spark raises where there is no such table. In an object store
    it is read by `s3a://`, which the session must know.
    """
    path = f"{str(lake).rstrip('/').replace('s3://', 's3a://', 1)}/{CLUSTER_METRICS.name}"
    last = ",\n".join(f"last_value({name}, true) OVER so_far AS {name}" for name in _COUNTS)
    changed = ",\n".join(f"max_by({name}, offset) AS {name}" for name in _COUNTS)
    return spark.sql(
        f"""
        WITH changed AS (
          SELECT date_trunc('MINUTE', timestamp) AS minute, {changed},
                 sum(unclean_leader_elections) AS unclean_leader_elections,
                 sum(elr_leader_elections) AS elr_leader_elections
          FROM delta.`{path}` WHERE timestamp IS NOT NULL GROUP BY 1),
        minutes AS (
          SELECT explode(sequence(min(minute), max(minute), INTERVAL 1 MINUTE)) AS minute FROM changed)
        SELECT minute, {last},
               coalesce(unclean_leader_elections, 0) AS unclean_leader_elections,
               coalesce(elr_leader_elections, 0) AS elr_leader_elections
        FROM minutes LEFT JOIN changed USING (minute)
        WINDOW so_far AS (ORDER BY minute)
        ORDER BY minute
        """  # noqa: S608 - names of ours, and a path of the caller's own
    )
