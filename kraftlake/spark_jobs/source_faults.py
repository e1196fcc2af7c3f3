"""The errors of the source `kraft` as Spark shows them: one sentence, without a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.spark_jobs.worker_daemon import MODULE as WORKER_DAEMON

F = TypeVar("F", bound=Callable[..., Any])


class KraftSourceError(Exception):
    """The error of a read in one sentence, which Spark shows as the error of the query."""


def in_one_sentence(function: F) -> F:
    """Raise kraftlake's errors as KraftSourceError, without the traceback that Spark would print."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except KraftlakeError as fault:
            if _in_spark_worker():  # this process ends with the error, and the setting with it
                os.environ["SPARK_HIDE_TRACEBACK"] = "1"
            raise KraftSourceError(str(fault)) from None

    return wrapped  # type: ignore[return-value]


def _in_spark_worker() -> bool:
    """Whether this process is a Python worker of Spark, or a fork of the daemon that starts workers."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name.startswith(("pyspark.", WORKER_DAEMON))
