"""The derived tables of a lake as Spark DataFrames, on a disk or in an object store.

Spark's Parquet reader reads the files of a table on a disk, without Delta's jars. For an object store it would need a
client of Hadoop's, so there Python on the executors reads them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kraftlake.metadata_log.delta_table.data_files import open_parquet_file
from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.lakes import distinct_names, lakes_at, names_many
from kraftlake.metadata_log.storage.location import Location, fixed_location
from kraftlake.runtime.errors import CorruptDataError, LakeError, UsageError
from kraftlake.runtime.moments import LogTime, Moment, moment_of
from kraftlake.spark_jobs.spark_versions import arrow_schema
from kraftlake.spark_jobs.tasks import called, numbered_frame, parallelism
from kraftlake.tables.cluster_id import CLUSTER_ID_FIELD, cluster_id_of, has_cluster_id
from kraftlake.tables.derived_tables import columns_of, derived_table
from kraftlake.tables.history.rows_at import FROM, TO, rows_at
from kraftlake.tables.history.state_at import PARTITIONS, covering, holding, schema_of
from kraftlake.tables.metrics.cluster_counts import COUNTS
from kraftlake.tables.metrics.cluster_metrics import CLUSTER_METRICS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    FileReader = Callable[[Location], Iterable[pa.Table]]
    LakePlace = str | Path | Location

_LAKE: Final = pa.field("lake", pa.string())
_GLOBS = "__globPaths__"
"""Spark's option for whether `*` and similar characters in a path are patterns."""


def table_frame(
    spark: SparkSession, lakes: LakePlace | Iterable[LakePlace], table: str, *, columns: Sequence[str] | None = None
) -> DataFrame:
    """The rows of the current version of a derived table (`events`, `partition_history`, …), in all or some columns.

    `lakes` is one lake; or a list of lakes, a folder of lakes or a pattern (`lakes_at`), which are read as one table.
    The columns are then those of each lake's table, with `cluster_id` for the cluster, followed by `lake` (string): the
    name of the lake's folder, or its whole path or URI where several have the same name. A column that the table of an
    earlier release lacks is null there.

    Raises LakeError if there is no such lake or no such table in one of them, or if the types of a column differ;
    UsageError for an unknown column.
    """
    if isinstance(lakes, str) or not isinstance(lakes, Iterable):
        place = fixed_location(lakes)
        alone = called(spark, lambda: None if names_many(place) else derived_table(place, table))
        if alone is not None:
            return _files_of(spark, alone, columns_of(table, _schema(alone), columns))
        lakes = [place]
    places = [fixed_location(place) for place in lakes]
    found, states, ids = called(spark, lambda: _tables_at(places, table))
    try:
        known = pa.unify_schemas([*map(_schema, states), pa.schema([CLUSTER_ID_FIELD, _LAKE])])
    except pa.ArrowException as fault:
        raise LakeError(f"the tables {table}/ of these lakes don't have the same columns: {fault}") from fault
    wanted = columns_of(table, known, columns)
    named = zip(states, distinct_names(found), ids, strict=True)
    return _union([_named_frame(spark, *each, wanted) for each in named]).select(*wanted.names)


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
        return disk_files_frame(spark, state, on_disk).where(
            f"{FROM} <= {offset} AND ({TO} > {offset} OR {TO} IS NULL)"
        )
    return files_frame(spark, files, partial(rows_at, offset=offset, schema=schema), schema)


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


def _valid(
    lake: Location, table: str, moment: int | datetime | LogTime | None
) -> tuple[TableState, int, list[Location]]:
    state, offset = covering(lake, table, moment)
    return state, offset, holding(state, offset)


def _tables_at(places: Iterable[Location], table: str) -> tuple[list[Location], list[TableState], list[str | None]]:
    """The lakes at some places, the states of their tables, and the ids of their clusters."""
    lakes = list(dict.fromkeys(lake for place in places for lake in lakes_at(place)))
    if not lakes:
        raise UsageError("name at least one lake")
    return lakes, [derived_table(lake, table) for lake in lakes], [cluster_id_of(lake) for lake in lakes]


def _named_frame(
    spark: SparkSession, state: TableState, name: str, cluster_id: str | None, wanted: pa.Schema
) -> DataFrame:
    """The rows of one of many lakes' tables, in the wanted columns that it has, with the columns that name it."""
    from pyspark.sql.functions import lit

    schema = _schema(state)
    own = [field for field in schema if field.name in wanted.names] or list(schema)[:1]
    frame = _files_of(spark, state, pa.schema(own)).withColumn(_LAKE.name, lit(name))
    known = CLUSTER_ID_FIELD.name in frame.columns
    return frame if known else frame.withColumn(CLUSTER_ID_FIELD.name, lit(cluster_id).cast("string"))


def _union(frames: list[DataFrame]) -> DataFrame:
    """All rows of frames, united by column in pairs: Spark analyses a frame again in each union of it."""
    while len(frames) > 1:
        pairs = [frames[start : start + 2] for start in range(0, len(frames), 2)]
        frames = [pair[0].unionByName(pair[1], True) if len(pair) > 1 else pair[0] for pair in pairs]
    return frames[0]


def _files_of(spark: SparkSession, state: TableState, schema: pa.Schema) -> DataFrame:
    """The rows of all files of a table: those in an object store are read by Python on the executors."""
    paths = [state.path / file.path for file in state.files.values()]
    if isinstance(state.path, Path):
        return disk_files_frame(spark, state, [path for path in paths if isinstance(path, Path)]).select(*schema.names)
    return files_frame(spark, paths, partial(_whole, schema), schema)


def disk_files_frame(spark: SparkSession, state: TableState, paths: Sequence[Path]) -> DataFrame:
    """The rows of some of a table's files on a disk, by Spark's own reader, in all columns of the table.

    Delta's reader would read the table's log first, in jobs of Spark's that take longer than a hundred thousand rows.
    """
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(state.metadata.schema_string))
    if not paths:
        return spark.createDataFrame([], schema)
    plain = spark.read.schema(schema).option(_GLOBS, "false")
    return plain.parquet(*map(str, paths))


def files_frame(spark: SparkSession, paths: Sequence[Location], read: FileReader, schema: pa.Schema) -> DataFrame:
    """The rows that `read` returns for each of a table's files, on the executors, in the columns of `schema`."""

    def rows(number: int) -> Iterator[pa.RecordBatch]:
        for table in read(paths[number]):
            yield from table.to_batches()

    tasks = min(len(paths), 4 * parallelism(spark))
    return numbered_frame(spark, len(paths), tasks, rows, schema)


def _schema(state: TableState) -> pa.Schema:
    from pyspark.sql.types import StructType

    return arrow_schema(StructType.fromJson(json.loads(state.metadata.schema_string)))


def _whole(schema: pa.Schema, path: Location) -> Iterator[pa.Table]:
    """All rows of a file, a row group at a time."""
    try:
        parquet = open_parquet_file(path)
        for group in range(parquet.metadata.num_row_groups):
            yield parquet.read_row_group(group, columns=schema.names).select(schema.names).cast(schema)
    except (pa.ArrowException, OSError, KeyError, ValueError) as fault:
        raise CorruptDataError(
            f"{path} can't be read: {fault}. If its table was compacted meanwhile, ask again."
        ) from fault
