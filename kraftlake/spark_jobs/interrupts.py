"""What an interrupt (SIGINT) does to a run that holds a Spark session of its own: it ends the run, and says nothing."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def silent_interrupts() -> Iterator[None]:
    """Keep py4j from writing tracebacks of what hit it in the middle of a call; it raises them as well.

    It speaks by the root logger and by loggers of its own.
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
    """Put back the handler that pyspark replaces when it starts a session.

    Its own asks the JVM to cancel all jobs, by a second call within the one that was interrupted, which py4j can't do;
    a run stops its stream and its session by itself.
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
