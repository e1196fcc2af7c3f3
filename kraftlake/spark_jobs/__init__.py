"""Streams and batch jobs over a lake's log on Spark: replay into images, local changes and snapshots.

`pyspark` is imported in this room only, and only when one of these is touched.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraftlake.spark_jobs.fold.build_snapshot import BuiltSnapshot, build_snapshot
    from kraftlake.spark_jobs.fold.image_frame import image_frame
    from kraftlake.spark_jobs.fold.local_changes_frame import local_changes_frame
    from kraftlake.spark_jobs.java import java_home
    from kraftlake.spark_jobs.replay_stream import ReplayResult, run_replay
    from kraftlake.spark_jobs.session import spark_session

__all__ = [
    "BuiltSnapshot",
    "ReplayResult",
    "build_snapshot",
    "image_frame",
    "java_home",
    "local_changes_frame",
    "run_replay",
    "spark_session",
]

_MODULES = {
    "BuiltSnapshot": "fold.build_snapshot",
    "ReplayResult": "replay_stream",
    "build_snapshot": "fold.build_snapshot",
    "image_frame": "fold.image_frame",
    "java_home": "java",
    "local_changes_frame": "fold.local_changes_frame",
    "run_replay": "replay_stream",
    "spark_session": "session",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
