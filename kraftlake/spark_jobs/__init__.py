"""Streams and batch jobs over a lake's log on Spark: replay into images, local changes and snapshots, derived tables.

Only this room imports `pyspark`, and only when one of these names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kraftlake.runtime.extras import check_spark
from kraftlake.runtime.lazy_door import lazy_door

if TYPE_CHECKING:
    from kraftlake.spark_jobs.data_source import KraftDataSource
    from kraftlake.spark_jobs.derived_frames import counts_by_minute, state_frame, table_frame
    from kraftlake.spark_jobs.fold.build_snapshot import BuiltSnapshot, build_snapshot, run_snapshot
    from kraftlake.spark_jobs.fold.topic_frames import image_frame, local_changes_frame
    from kraftlake.spark_jobs.image_steps import image_stream
    from kraftlake.spark_jobs.java import java_home
    from kraftlake.spark_jobs.many_lakes import LakeRun, LakesResult, run_lakes
    from kraftlake.spark_jobs.replay_listener import ReplayListener, ReplayProgress
    from kraftlake.spark_jobs.session import spark_session
    from kraftlake.spark_jobs.stream_options import StreamOptions, StreamResult
    from kraftlake.spark_jobs.table_stream import run_job, run_tables
    from kraftlake.spark_jobs.typed_read import read_records

__all__ = [
    "BuiltSnapshot",
    "KraftDataSource",
    "LakeRun",
    "LakesResult",
    "ReplayListener",
    "ReplayProgress",
    "StreamOptions",
    "StreamResult",
    "build_snapshot",
    "counts_by_minute",
    "image_frame",
    "image_stream",
    "java_home",
    "local_changes_frame",
    "read_records",
    "run_job",
    "run_lakes",
    "run_snapshot",
    "run_tables",
    "spark_session",
    "state_frame",
    "table_frame",
]


_EXPORTED: Final = {
    "data_source": "KraftDataSource",
    "derived_frames": "counts_by_minute state_frame table_frame",
    "fold.build_snapshot": "BuiltSnapshot build_snapshot run_snapshot",
    "fold.topic_frames": "image_frame local_changes_frame",
    "image_steps": "image_stream",
    "java": "java_home",
    "many_lakes": "LakeRun LakesResult run_lakes",
    "replay_listener": "ReplayListener ReplayProgress",
    "session": "spark_session",
    "stream_options": "StreamOptions StreamResult",
    "table_stream": "run_job run_tables",
    "typed_read": "read_records",
}
_exported, __dir__ = lazy_door(
    __name__, {name: f"{__name__}.{module}" for module, names in _EXPORTED.items() for name in names.split()}
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        check_spark()
    return _exported(name)
