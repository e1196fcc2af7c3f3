"""What the micro-batches of a stream report to the process that has started it."""

from __future__ import annotations

import sys
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from kraftlake.spark_jobs.stream_faults import server_gone
from kraftlake.spark_jobs.tasks import is_remote
from kraftlake.tables.shards.faults import raise_first
from kraftlake.tables.shards.results import Results, result_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@attrs.define
class Report:
    """The newest result of a function of `foreachBatch`, or its error, for the process that has started the stream.

    In a classic session both ends are that process. On Connect the function runs in the server's Python, and the result
    is a temporary view of the session that both ends share.
    """

    view: str = attrs.field(factory=lambda: f"kraftlake_{uuid.uuid4().hex}")
    _said: object = None

    def say(self, spark: SparkSession, said: object) -> None:
        """Report a result, or an error of kraftlake's, in place of the last one."""
        if not is_remote(spark):
            self._said = said
            return
        rows = pa.Table.from_batches([result_of(0, lambda: (None, _raised(said)))])
        spark.createDataFrame(rows).createOrReplaceTempView(self.view)

    def heard(self, spark: SparkSession) -> Any:
        """The newest result; None if there is none yet. Raises the error that was reported."""
        if not is_remote(spark):
            return _raised(self._said)
        from pyspark.errors import AnalysisException

        try:
            said = Results.of(spark.table(self.view).toArrow())
        except AnalysisException:
            return None
        raise_first(said.faults)
        return said.facts[0]

    def end(self, spark: SparkSession) -> None:
        """Drop the view, unless the error that is being raised says that the server is gone."""
        if is_remote(spark) and not server_gone(sys.exception()):
            with suppress(Exception):
                spark.catalog.dropTempView(self.view)


def _raised(said: object) -> object:
    if isinstance(said, BaseException):
        raise said
    return said
