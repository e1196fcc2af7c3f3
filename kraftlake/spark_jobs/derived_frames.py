"""The derived tables of a lake as Spark DataFrames, on a disk or in an object store.

Delta's own reader reads tables on a disk. For an object store Spark would need a client of Hadoop's, so there Python on
the executors reads the tables' files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.metadata_log.delta_table.table_state import TableState
from kraftlake.metadata_log.storage.location import Location, fixed_location, open_parquet_file
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.spark_jobs.fold.frames import numbered_frame
from kraftlake.tables.derived_tables import columns_of, derived_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    FileReader = Callable[[Location], Iterable[pa.Table]]

_GLOBS = "__globPaths__"
"""Spark's option for whether `*` and similar characters in a path are patterns."""


def table_frame(
    spark: SparkSession, lake: str | Path | Location, table: str, *, columns: Sequence[str] | None = None
) -> DataFrame:
    """The rows of a derived table (`events`, `partition_history`, …) as it is now, in all or some of its columns.

    Raises LakeError if there is no such table, UsageError for an unknown column.
    """
    state = derived_table(fixed_location(lake), table)
    schema = columns_of(table, _schema(state), columns)
    if isinstance(state.path, Path):
        return spark.read.format("delta").load(str(state.path)).select(*schema.names)
    paths = [state.path / file.path for file in state.files.values()]
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
    """The rows that `read` gives of each of a table's files, on the executors, in the columns of `schema`."""

    def rows(number: int) -> Iterator[pa.RecordBatch]:
        for table in read(paths[number]):
            yield from table.to_batches()

    tasks = min(len(paths), 4 * spark.sparkContext.defaultParallelism)
    return numbered_frame(spark, len(paths), tasks, rows, schema)


def _schema(state: TableState) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    return to_arrow_schema(StructType.fromJson(json.loads(state.metadata.schema_string)), timezone="UTC")


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
