"""The differences between the releases of Spark that kraftlake runs on. Imports pyspark only on use."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow types of Spark's, with times in UTC, which Spark 4.2 needs as an argument."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in inspect.signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def by_number(frame: DataFrame, count: int, column: str) -> DataFrame:
    """The rows in `count` partitions by the number in a column: a partition for each; by hash before Spark 4.1."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, column)
    return frame.repartition(count, column)


def checkpoint_settings(version: str) -> dict[str, str | None]:
    """The settings by which a release of Spark writes a file of a checkpoint with two processes and not with ten."""
    major, minor, *_ = version.split(".")
    if (int(major), int(minor)) < (4, 2):
        return {}
    manager = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    return {"spark.sql.streaming.checkpointFileManagerClass": manager}
