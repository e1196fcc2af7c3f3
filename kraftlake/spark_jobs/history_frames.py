"""The rows of a history table that were valid at an offset, as a Spark DataFrame."""

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
    """The rows of a history table that were valid at an offset or a time, as a DataFrame in the table's columns.

    The rows are those of the table's current version. In an object store Python on the executors reads the files that
    may have them, else Spark's Parquet reader does. Raises LakeError if there is no such table, OffsetError for an
    offset that it doesn't cover yet.
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
    """The SQL condition for the rows of a history table that were valid at an offset."""
    return f"{FROM} <= {offset} AND ({TO} > {offset} OR {TO} IS NULL)"
