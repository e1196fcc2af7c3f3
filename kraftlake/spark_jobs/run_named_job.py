"""Runs a job by its name: the command line and spark-submit do it from here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.runtime.arguments import text
from kraftlake.runtime.errors import UsageError
from kraftlake.tables.jobs import JOBS, RECORDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftlake.spark_jobs.replay_listener import ReplayListener
    from kraftlake.spark_jobs.stream_options import StreamOptions, StreamResult
    from kraftlake.tables.catch_up.table_run import Progress


def run_job(
    name: str,
    lake: str | Path,
    *,
    options: StreamOptions | None = None,
    snapshot_every_bytes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: Progress | None = None,
    listener: ReplayListener | None = None,
) -> StreamResult:
    """Run one of JOBS; the options and what is raised are those of `run_tables`, and UsageError for another name.

    `snapshot_every_bytes` is for jobs that write snapshots, Kafka's default unless it is given.
    """
    from kraftlake.spark_jobs.table_stream import run_tables
    from kraftlake.tables.catch_up.snapshot_publisher import DEFAULT_SNAPSHOT_BYTES

    job = JOBS.get(text(name, "the name of a job"))
    if job is None:
        raise UsageError(f"there is no job {name!r}: it is one of {', '.join(JOBS)}")
    if job is RECORDS:
        from kraftlake.spark_jobs.records import run_records

        return run_records(lake, options=options, spark=spark, on_progress=on_progress, listener=listener)
    return run_tables(
        job.name,
        lake,
        job.new_writers(),
        options=options,
        snapshot_every_bytes=(snapshot_every_bytes or DEFAULT_SNAPSHOT_BYTES) if job.snapshots else None,
        spark=spark,
        on_progress=on_progress,
        listener=listener,
    )
