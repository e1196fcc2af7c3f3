"""For the cluster's driver: runs jobs over a lake, or each over a lake of its own, so many records in a micro-batch.

After step number `pause_at` of the first job (0: never) it makes the file LAKE.paused and waits for LAKE.go; the answer
is how many steps of executors, and how many micro-batches of the driver, each job had. `JOB` in the lake's path stands
for the job's name.
"""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from kraftlake.spark_jobs import StreamOptions, run_job, shard_run


def main(spark: SparkSession, lake: str, records: str, pause_at: str, *jobs: str) -> dict[str, list[int]]:
    steps = 0
    shard_run.SHORT_LOG = 0  # type: ignore[misc] # a step is to have tasks on each executor

    def pause(_: int, __: int) -> None:
        nonlocal steps
        steps += 1
        if steps == int(pause_at):
            Path(f"{lake}.paused").touch()
            while not Path(f"{lake}.go").exists():
                time.sleep(0.05)

    done = {}
    for job in jobs:
        options = StreamOptions(max_records=int(records))
        result = run_job(
            job,
            lake.replace("JOB", job),
            spark=spark,
            options=options,
            on_progress=pause,
            snapshot_every_bytes=60_000,
        )
        done[job] = [result.steps, result.driver_batches]
    return done
