"""The Spark session of a run, started on first use."""

from __future__ import annotations

import logging
import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.runtime.extras import require
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


@contextmanager
def silent_interrupts() -> Iterator[None]:
    """Keep py4j from logging tracebacks of an interrupted call, which it raises as well.

    It logs by the root logger and by loggers of its own.
    """
    root, own = logging.getLogger(), logging.getLogger("py4j")
    propagated = own.propagate
    root.addFilter(_is_not_of_py4j)
    own.propagate = False
    try:
        yield
    finally:
        root.removeFilter(_is_not_of_py4j)
        own.propagate = propagated


@contextmanager
def interrupt_handler_kept() -> Iterator[None]:
    """Restore the handler that pyspark replaces when it starts a session.

    pyspark's handler asks the JVM to cancel all jobs, by a second call within the interrupted one, which py4j can't do;
    a run stops its stream and its session itself.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if in_main_thread and before is not None:
            signal.signal(signal.SIGINT, before)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
