"""The Spark session of a run, started on first use."""

from __future__ import annotations

import warnings
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from kraftlake.runtime.extras import require
from kraftlake.spark_jobs.interrupts import interrupt_handler_kept, silent_interrupts
from kraftlake.spark_jobs.stream_faults import cause_of
from kraftlake.spark_jobs.tasks import live, remote_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RunSession:
    """The given session, or the active one, also of Connect, or the run's own, which it stops: a context manager.

    A run with nothing to stream does not call `get`, and so starts no JVM. `master` is that of the run's own session,
    in which an interrupt ends the run without messages of py4j.
    """

    def __init__(self, spark: SparkSession | None, name: str, master: str | None = None) -> None:
        self._spark = remote_session() if spark is None else spark
        self._name = name
        self._master = master
        self._ours = False
        self._stack = ExitStack()

    def __enter__(self) -> RunSession:
        return self

    def __exit__(self, _kind: object, fault: BaseException | None, _trace: object) -> None:
        with self._stack:
            if self._spark is not None and self._ours:
                _stop(self._spark)
        if fault is not None and (self._ours or self._spark is not None):
            cause = cause_of(fault)
            if cause is not fault:
                raise cause from None if isinstance(cause, KeyboardInterrupt) else fault

    @property
    def held(self) -> SparkSession | None:
        """The session if there is one already."""
        return self._spark

    def get(self) -> SparkSession:
        """The session."""
        if self._spark is None:
            require("pyspark", "Spark jobs")
            from pyspark import SparkContext

            from kraftlake.spark_jobs.session import LOCAL, spark_session

            self._ours = SparkContext._active_spark_context is None
            if self._ours:
                self._stack.enter_context(silent_interrupts())
            with interrupt_handler_kept():
                self._spark = spark_session(self._name, master=self._master or LOCAL)
        return live(self._spark)


def _stop(session: SparkSession) -> None:
    """Stop a session, whether or not its JVM still runs."""
    from py4j.protocol import Py4JError

    with warnings.catch_warnings(), suppress(Py4JError, ConnectionError):
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
        session.stop()
