"""The releases of Spark that kraftlake runs on, and what differs between them. Imports pyspark only when it is used."""

from __future__ import annotations

import inspect
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from kraftlake.runtime.errors import EnvironmentFaultError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType


def check_release() -> None:
    """Raise EnvironmentFaultError if the installed Spark is too old; an unknown one may do."""
    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        return
    if int(installed.partition(".")[0]) < 4:
        raise EnvironmentFaultError(
            f"kraftlake runs on Spark 4.0 or newer, and this is {installed}: `kraftlake tables` and `kraftlake.open` "
            "need no Spark"
        )


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow types of Spark's, with times in UTC, which Spark 4.2 wants to be told."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in inspect.signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def register(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a Python source; Spark 4.0 refuses one that it has found itself, in a `pyspark_…` package."""
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(source)
    except AnalysisException as fault:
        if fault.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def by_number(frame: DataFrame, count: int, column: str) -> DataFrame:
    """The rows in `count` partitions by the number in a column: a partition for each; by hash before Spark 4.1."""
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(count, column)
    return frame.repartition(count, column)
