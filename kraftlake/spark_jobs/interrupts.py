"""Lets an interrupt (SIGINT) end a run with its own Spark session, without tracebacks of py4j."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
