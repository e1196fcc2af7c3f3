"""What the micro-batches of a stream report to the process that has started it."""

from __future__ import annotations

import pickle
import sys
import uuid
from base64 import b64decode, b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.stream_faults import server_gone
from kraftlake.spark_jobs.tasks import is_remote
from kraftlake.tables.shards.faults import fault_to_json, raise_first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@attrs.define
class Report:
    """The newest result of a function of `foreachBatch`, or its error, for the process that has started the stream.

    In a classic session both ends are that process. On Connect the function runs in the server's Python, and the result
    is a setting of the session that both ends share, which takes no job of Spark's.
    """

    setting: str = attrs.field(factory=lambda: f"kraftlake.report.{uuid.uuid4().hex}")
    _newest: Any = None

    def put(self, spark: SparkSession, result: object) -> None:
        """Report a result, or an error of kraftlake's, in place of the last one."""
        if not is_remote(spark):
            self._newest = result
            return
        sent = fault_to_json(result) if isinstance(result, KraftlakeError) else result
        spark.conf.set(self.setting, b64encode(pickle.dumps(sent)).decode())

    def newest(self, spark: SparkSession) -> Any:
        """The newest result; None if there is none yet. Raises the error that was reported."""
        result = self._newest
        if is_remote(spark):
            sent = spark.conf.get(self.setting, "")
            result = pickle.loads(b64decode(sent)) if sent else None  # noqa: S301 - of a process that this run has started
        if isinstance(result, BaseException):
            raise result
        raise_first([result] if isinstance(result, str) else [])
        return result

    def end(self, spark: SparkSession) -> None:
        """Drop the setting, unless the error that is being raised says that the server is gone."""
        if is_remote(spark) and not server_gone(sys.exception()):
            with suppress(Exception):
                spark.conf.unset(self.setting)
