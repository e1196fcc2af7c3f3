"""Runs a job by its name: the entry point of the command line and spark-submit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kraftlake.tables.jobs import RECORDS, job_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kraftlake.spark_jobs.replay_listener import ReplayListener
    from kraftlake.spark_jobs.stream_options import StreamOptions, StreamResult
    from kraftlake.spark_jobs.stream_steps import ExecutorSteps
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
    """Update the tables of one of JOBS to the end of the lake's log, each from its own last offset.

    `snapshot_every_bytes` is for jobs that write snapshots, Kafka's default unless it is given: a snapshot is written
    after a step with which that many bytes of records have been added. `spark` None takes the active session, or starts
    one (`spark_session`) if there is something to do, and stops it at the end. `on_progress` is called after each step
    of the executors and each publication of the driver, `listener` after each micro-batch of the stream.

    Raises UsageError for another name and for invalid options; LakeError where there is no lake, another run writes one
    of the tables, or a table is not of this log or of another release; OffsetError where the log was trimmed past a
    table; EnvironmentFaultError when Spark fails; and the errors of replaying a record, with its offset.
    """
    from kraftlake.metadata_log.storage.location import fixed_location
    from kraftlake.spark_jobs.stream_options import checked
    from kraftlake.spark_jobs.stream_steps import StreamSteps
    from kraftlake.spark_jobs.table_stream import run_stream
    from kraftlake.tables.catch_up.snapshot_publisher import DEFAULT_SNAPSHOT_BYTES

    job = job_named(name)
    snapshots = (snapshot_every_bytes or DEFAULT_SNAPSHOT_BYTES) if job.snapshots else None
    place = fixed_location(lake)
    by_executors: ExecutorSteps
    if job is RECORDS:
        from kraftlake.spark_jobs.records import record_steps

        by_executors = partial(record_steps, place)
    else:
        from kraftlake.spark_jobs.shard_run import TableSteps

        most = checked(options).max_records
        by_executors = TableSteps(lake=place, names=job.tables, snapshot_every_bytes=snapshots, step_records=most)
    steps = StreamSteps(
        job=job.name,
        lake=place,
        new_writers=job.new_writers,
        by_executors=by_executors,
        snapshot_every_bytes=snapshots,
    )
    return run_stream(steps, options=options, spark=spark, on_progress=on_progress, listener=listener)
