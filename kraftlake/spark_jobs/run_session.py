"""The Spark session of a run, started when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RunSession:
    """A session that was given, or that is active, or one of the run's own, which it stops: a context manager.

    A run with nothing to stream never asks for it, and so starts no JVM.
    """

    def __init__(self, spark: SparkSession | None, name: str, master: str = "local[2]") -> None:
        self._spark = spark
        self._name = name
        self._master = master
        self._ours = False

    def __enter__(self) -> RunSession:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spark is not None and self._ours:
            self._spark.stop()

    @property
    def held(self) -> SparkSession | None:
        """The session where there is one."""
        return self._spark

    def get(self) -> SparkSession:
        """The session."""
        if self._spark is None:
            from pyspark import SparkContext

            from kraftlake.spark_jobs.session import spark_session

            self._ours = SparkContext._active_spark_context is None
            self._spark = spark_session(self._name, master=self._master)
        return self._spark
