"""Work in the Python of a server of Spark Connect, and what it reports to the client."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import pyarrow as pa

from kraftlake.metadata_log.storage.location import Location
from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.source_options import OFFSETS
from kraftlake.spark_jobs.tasks import configured, is_remote, telling_faults
from kraftlake.tables.shards.faults import fault_to_json, raise_first

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

T = TypeVar("T")
_TRIES: Final = 4

OWN_CHECKPOINT: Final = {
    "spark.sql.streaming.checkpointLocation": None,
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
}
"""The settings of a session for a stream whose checkpoint ends with it, whatever checkpoints the session keeps."""


def in_server(spark: SparkSession, lake: Location, function: Callable[[SparkSession], T]) -> T:
    """The result of a function that works with a session and a lake: in the driver, on Connect in the server's Python.

    Raises its error.
    """
    from kraftlake.spark_jobs.registered import kraft_stream

    if not is_remote(spark):
        return function(spark)
    report = Report()

    def take(frame: DataFrame, _: int) -> None:
        result, fault = None, None
        try:
            result = function(frame.sparkSession)
        except KraftlakeError as error:
            fault = fault_to_json(error)
        report.say(frame.sparkSession, (result, fault))

    try:
        with telling_faults():
            with configured(spark, OWN_CHECKPOINT):
                once = kraft_stream(spark, lake, {"columns": OFFSETS}).writeStream.trigger(availableNow=True)
                query = started(once.foreachBatch(take))
            try:
                query.awaitTermination()
            finally:
                query.stop()
            result, fault = report.heard(spark)
    finally:
        report.end(spark)
    raise_first([] if fault is None else [fault])
    return result  # type: ignore[no-any-return]


def started(writer: DataStreamWriter) -> StreamingQuery:
    """Start a stream. Spark gives the server's Python ten seconds to start, and a busy machine needs several tries."""
    from pyspark.errors import PySparkException

    for _ in range(_TRIES - 1):
        try:
            return writer.start()
        except PySparkException as fault:
            if "failed to connect back" not in str(fault):
                raise
    return writer.start()


@attrs.frozen
class Report:
    """The newest value that a function of `foreachBatch` reports: a temporary view of the session of both ends.

    It can be sent to other processes.
    """

    view: str = attrs.field(factory=lambda: f"kraftlake_{uuid.uuid4().hex}")

    def say(self, spark: SparkSession, value: object) -> None:
        """Report a value in place of the last one."""
        rows = pa.table({"said": pa.array([pickle.dumps(value)], pa.binary())})
        spark.createDataFrame(rows).createOrReplaceTempView(self.view)

    def heard(self, spark: SparkSession) -> Any:
        """The newest value; None if there is none yet."""
        from pyspark.errors import AnalysisException

        try:
            said = spark.table(self.view).toArrow()
        except AnalysisException:
            return None
        return pickle.loads(said["said"][0].as_py())  # noqa: S301 - of the server that runs this client's functions

    def end(self, spark: SparkSession) -> None:
        """Drop the view."""
        with suppress(Exception):  # of a server that has ended
            spark.catalog.dropTempView(self.view)
