"""What was so at an offset, from a history table, as a Spark frame."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.metadata_log.storage.location import fixed_location
from kraftlake.runtime.moments import Moment, moment_of
from kraftlake.spark_jobs.derived_frames import disk_files_frame, files_frame
from kraftlake.tables.cluster_id import CLUSTER_ID_FIELD, has_cluster_id
from kraftlake.tables.history.rows_at import FROM, TO, rows_at
from kraftlake.tables.history.state_at import PARTITIONS, covering, holding, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def state_frame(spark: SparkSession, lake: str | Path, when: Moment, table: str = PARTITIONS) -> DataFrame:
    """The rows of a history table that were so at an offset or a time, as a DataFrame in the table's columns.

    It is what the table has for it now. In an object store the executors' own Python reads the files that can hold it,
    else Spark's reader of Parquet files does. Raises LakeError where there is no such table, OffsetError for an offset
    that it doesn't cover yet.
    """
    schema = schema_of(table)
    state, offset = covering(fixed_location(lake), table, moment_of(when, None))
    if not has_cluster_id(state):
        schema = pa.schema([field for field in schema if field != CLUSTER_ID_FIELD])
    files = holding(state, offset)
    if isinstance(state.path, Path):
        on_disk = [path for path in files if isinstance(path, Path)]
        return disk_files_frame(spark, state, on_disk).where(at_offset(offset))
    return files_frame(spark, files, partial(rows_at, offset=offset, schema=schema), schema)


def at_offset(offset: int) -> str:
    """The SQL condition on a history table's rows that were so at an offset."""
    return f"{FROM} <= {offset} AND ({TO} > {offset} OR {TO} IS NULL)"
