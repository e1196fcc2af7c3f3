"""Streams and batch jobs over a lake's log on Spark: replay into images, local changes and snapshots, derived tables.

Only this room imports `pyspark`, and only when one of these names is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


_exported, __dir__ = lazy_door(
    __name__,
    {
        "BuiltSnapshot": "kraftlake.spark_jobs.fold.build_snapshot",
        "KraftDataSource": "kraftlake.spark_jobs.data_source",
        "LakeRun": "kraftlake.spark_jobs.many_lakes",
        "LakesResult": "kraftlake.spark_jobs.many_lakes",
        "ReplayListener": "kraftlake.spark_jobs.replay_listener",
        "ReplayProgress": "kraftlake.spark_jobs.replay_listener",
        "StreamOptions": "kraftlake.spark_jobs.stream_options",
        "StreamResult": "kraftlake.spark_jobs.stream_options",
        "build_snapshot": "kraftlake.spark_jobs.fold.build_snapshot",
        "counts_by_minute": "kraftlake.spark_jobs.derived_frames",
        "image_frame": "kraftlake.spark_jobs.fold.topic_frames",
        "image_stream": "kraftlake.spark_jobs.image_steps",
        "java_home": "kraftlake.spark_jobs.java",
        "local_changes_frame": "kraftlake.spark_jobs.fold.topic_frames",
        "read_records": "kraftlake.spark_jobs.typed_read",
        "run_job": "kraftlake.spark_jobs.table_stream",
        "run_lakes": "kraftlake.spark_jobs.many_lakes",
        "run_snapshot": "kraftlake.spark_jobs.fold.build_snapshot",
        "run_tables": "kraftlake.spark_jobs.table_stream",
        "spark_session": "kraftlake.spark_jobs.session",
        "state_frame": "kraftlake.spark_jobs.derived_frames",
        "table_frame": "kraftlake.spark_jobs.derived_frames",
    },
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        check_spark()
    return _exported(name)
