"""Work in the Python of a server of Spark Connect, and what it reports to the client."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import pyarrow as pa

from kraftlake.metadata_log.storage.location import Location
from kraftlake.spark_jobs.source_options import OFFSETS
from kraftlake.spark_jobs.stream_faults import server_gone
from kraftlake.spark_jobs.tasks import configured, is_remote, telling_faults
from kraftlake.tables.shards.faults import raise_first
from kraftlake.tables.shards.results import Results, result_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

T = TypeVar("T")
_TRIES: Final = 4

OF_JOBS: Final = {
    "spark.sql.streaming.checkpointLocation": None,
    "spark.sql.streaming.forceDeleteTempCheckpointLocation": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""The settings of a session for a job's stream.

Its checkpoint ends with it, whatever checkpoints the session keeps. Spark compiles no code for it: its rows are few and
large, and the compiler would take half a second of the first job.
"""


def in_server(spark: SparkSession, lake: Location, function: Callable[[SparkSession], T]) -> T:
    """The result of a function that works with a session and a lake: in the driver, on Connect in the server's Python.

    Raises its error.
    """
    from kraftlake.spark_jobs.registered import kraft_stream

    if not is_remote(spark):
        return function(spark)
    report = Report()

    def take(frame: DataFrame, _: int) -> None:
        report.say(frame.sparkSession, lambda: function(frame.sparkSession))

    with telling_faults(spark):
        try:
            with configured(spark, OF_JOBS):
                once = kraft_stream(spark, lake, {"columns": OFFSETS}).writeStream.trigger(availableNow=True)
                query = started(once.foreachBatch(take))
            with ended(query):
                query.awaitTermination()
            return report.heard(spark)  # type: ignore[no-any-return]
        finally:
            report.end(spark)


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


@contextmanager
def ended(query: StreamingQuery) -> Iterator[None]:
    """End a query with the context, unless its server is gone."""
    try:
        yield
    except BaseException as fault:
        if not server_gone(fault):
            with suppress(Exception):
                query.stop()
        raise
    query.stop()


@attrs.frozen
class Report:
    """The newest result of a function of `foreachBatch`, for the client: a temporary view of the session of both ends.

    It can be sent to other processes.
    """

    view: str = attrs.field(factory=lambda: f"kraftlake_{uuid.uuid4().hex}")

    def say(self, spark: SparkSession, work: Callable[[], object]) -> None:
        """Report what a function returns, or its error, in place of the last result."""
        rows = pa.Table.from_batches([result_of(0, lambda: (None, work()))])
        spark.createDataFrame(rows).createOrReplaceTempView(self.view)

    def heard(self, spark: SparkSession) -> Any:
        """The newest result; None if there is none yet. Raises the error that was reported."""
        from pyspark.errors import AnalysisException

        try:
            said = Results.of(spark.table(self.view).toArrow())
        except AnalysisException:
            return None
        raise_first(said.faults)
        return said.facts[0]

    def end(self, spark: SparkSession) -> None:
        """Drop the view, unless the error that is being raised says that the server is gone."""
        if not server_gone(sys.exception()):
            with suppress(Exception):
                spark.catalog.dropTempView(self.view)
