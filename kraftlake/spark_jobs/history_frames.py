"""The rows of a history table that were valid at an offset, as a Spark DataFrame."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.moments import LogTime, Moment, moment_of
from kraftlake.spark_jobs.derived_frames import disk_files_frame, files_frame
from kraftlake.spark_jobs.tasks import called
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
    place, moment = fixed_location(lake), moment_of(when, None)
    state, offset, files = called(spark, lambda: _valid(place, table, moment))
    if not has_cluster_id(state):
        schema = pa.schema([field for field in schema if field != CLUSTER_ID_FIELD])
    if isinstance(state.path, Path):
        on_disk = [path for path in files if isinstance(path, Path)]
        return disk_files_frame(spark, state, on_disk).where(at_offset(offset))
    return files_frame(spark, files, partial(rows_at, offset=offset, schema=schema), schema)


def _valid(
    lake: Location, table: str, moment: int | datetime | LogTime | None
) -> tuple[TableState, int, list[Location]]:
    state, offset = covering(lake, table, moment)
    return state, offset, holding(state, offset)


def at_offset(offset: int) -> str:
    """The SQL condition for the rows of a history table that were valid at an offset."""
    return f"{FROM} <= {offset} AND ({TO} > {offset} OR {TO} IS NULL)"
