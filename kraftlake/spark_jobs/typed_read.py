"""Typed records of a lake as a Spark DataFrame, read and decoded in Arrow on the executors.

Python on the executors reads the lake's files itself: rows that went through the JVM first took twice the CPU time.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kraftlake.records.typed_rows import typed_schema
from kraftlake.runtime.arguments import path_text, texts
from kraftlake.runtime.errors import UsageError
from kraftlake.spark_jobs.tasks import called
from kraftlake.tables.record_scan import open_scanned, type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_records(
    spark: SparkSession,
    lake: str | Path,
    type: str | None = None,  # noqa: A002 - the word that the column has
    start_offset: int | None = None,
    end_offset: int | None = None,
    *,
    columns: Sequence[str] | None = None,
    show_secrets: bool = False,
) -> DataFrame:
    """The records at the offsets [start_offset, end_offset] of a lake, or of another source, with typed columns.

    Without `type`, a struct column for each record type, null in the rows of others; with one (`PartitionRecord` or
    `PARTITION_RECORD`) its rows alone, and its fields as columns. Name the `columns` that are needed: each one is
    copied from Python to the JVM. Rows come in no order. Secrets are redacted unless `show_secrets`.

    Raises NotASourceError if there is no source, OffsetError for an offset that it does not hold, UsageError for an
    unknown type or column. A record that can't be decoded fails the query with its offset.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    from kraftlake.spark_jobs.data_source import FORMAT, registered

    only = type_of(type)
    schema = _part_of(typed_schema(only), columns)
    path = path_text(lake)
    path = path if "://" in path else str(Path(path).absolute())
    called(spark, lambda: open_scanned(path, start_offset, end_offset) and None)  # raises
    options = {"type": only, "startOffset": start_offset, "endOffset": end_offset, "showSecrets": show_secrets}
    reader = registered(spark).read.format(FORMAT).schema(from_arrow_schema(schema))
    return reader.options(**{name: value for name, value in options.items() if value is not None}).load(path)


def _part_of(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    columns = texts(columns, "the name of a column")
    missing = [name for name in columns if name not in schema.names]
    if missing or not columns:
        raise UsageError(f"Records have no column {(missing or [''])[0]}; there are {', '.join(schema.names)}.")
    return pa.schema([schema.field(name) for name in columns])
