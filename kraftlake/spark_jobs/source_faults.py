"""The errors of Python that Spark runs, as Spark shows them: one sentence, without a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.worker_daemon import MODULE as WORKER_DAEMON


class KraftSourceError(Exception):
    """The error of a read in one sentence, which Spark shows as the error of the query."""


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Raise kraftlake's errors as KraftSourceError, without the traceback that Spark would print.

    A context, and a decorator of functions.
    """
    try:
        yield
    except KraftlakeError as fault:
        if _in_spark_worker():  # this process ends with the error, and the setting with it
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise KraftSourceError(str(fault)) from None


def _in_spark_worker() -> bool:
    """Whether this process is a Python worker of Spark, or a fork of the daemon that starts workers."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith(("pyspark.", WORKER_DAEMON))
