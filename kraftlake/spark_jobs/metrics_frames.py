"""The counts of `cluster_metrics/` at the end of each minute, as a Spark frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.spark_jobs.derived_frames import table_frame
from kraftlake.tables.metrics.cluster_counts import COUNTS
from kraftlake.tables.metrics.cluster_metrics import CLUSTER_METRICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def counts_by_minute(spark: SparkSession, lake: str | Path) -> DataFrame:
    """The counts at the end of each minute from the table's first to its last one, with the minutes without a change.

    Columns: `minute` (timestamp, its beginning), then the counts as in the table and the sums of that minute's
    elections. Rows without a time are left out. Raises LakeError if there is no such table.
    """
    last = ",\n".join(f"last_value({name}, true) OVER so_far AS {name}" for name in COUNTS)
    changed = ",\n".join(f"max_by({name}, offset) AS {name}" for name in COUNTS)
    return spark.sql(
        f"""
        WITH changed AS (
          SELECT date_trunc('MINUTE', timestamp) AS minute, {changed},
                 sum(unclean_leader_elections) AS unclean_leader_elections,
                 sum(elr_leader_elections) AS elr_leader_elections
          FROM {{rows}} WHERE timestamp IS NOT NULL GROUP BY 1),
        minutes AS (
          SELECT explode(sequence(min(minute), max(minute), INTERVAL 1 MINUTE)) AS minute FROM changed)
        SELECT minute, {last},
               coalesce(unclean_leader_elections, 0) AS unclean_leader_elections,
               coalesce(elr_leader_elections, 0) AS elr_leader_elections
        FROM minutes LEFT JOIN changed USING (minute)
        WINDOW so_far AS (ORDER BY minute)
        ORDER BY minute
        """,  # noqa: S608 - names of columns
        rows=table_frame(spark, lake, CLUSTER_METRICS.name),
    )
