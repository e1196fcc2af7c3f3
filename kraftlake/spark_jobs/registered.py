"""The source `kraft` in sessions that have not found it themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kraftlake.metadata_log.storage.location import Location
from kraftlake.spark_jobs.data_source import FORMAT, KraftDataSource
from kraftlake.spark_jobs.tasks import lend_access, live

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def registered(spark: SparkSession) -> SparkSession:
    """The session, which knows the source, and whose process that plans it has the access to the lake's store."""
    from pyspark.errors import AnalysisException

    lend_access(live(spark))
    try:
        spark.dataSource.register(KraftDataSource)
    except AnalysisException as fault:  # Spark 4.0 refuses a source that it has found itself, in `pyspark_kraft`
        if fault.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    return spark


def kraft_stream(spark: SparkSession, lake: Location, options: Mapping[str, Any]) -> DataFrame:
    """A stream of a lake."""
    return registered(spark).readStream.format(FORMAT).options(**options).load(str(lake))
