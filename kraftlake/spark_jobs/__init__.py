"""Streams and batch jobs over a lake's log on Spark: replay into images, local changes and snapshots.

`pyspark` is imported in this room only, and only when one of these is touched.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.spark_jobs.java import java_home
    from kraftlake.spark_jobs.replay_stream import ReplayResult, run_replay
    from kraftlake.spark_jobs.session import spark_session

__all__ = ["ReplayResult", "java_home", "run_replay", "spark_session"]

_MODULES = {
    "ReplayResult": "replay_stream",
    "java_home": "java",
    "run_replay": "replay_stream",
    "spark_session": "session",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
