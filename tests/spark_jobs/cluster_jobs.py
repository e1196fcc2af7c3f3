"""A driver for the cluster: runs jobs over a lake, or each over a lake of its own, so many records in a micro-batch.

`python -m tests.spark_jobs.cluster_jobs MASTER LAKE RECORDS PAUSE_AT JOB…`: after step number PAUSE_AT of the first job
(0: never) it makes the file LAKE.paused and waits for LAKE.go; then it prints how many steps of executors, and how many
micro-batches of the driver, each job had. `JOB` in LAKE stands for the job's name.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from kraftlake.spark_jobs import StreamOptions, run_job, spark_session


def main(master: str, lake: str, records: str, pause_at: str, *jobs: str) -> None:
    steps = 0

    def pause(_: int, __: int) -> None:
        nonlocal steps
        steps += 1
        if steps == int(pause_at):
            Path(f"{lake}.paused").touch()
            while not Path(f"{lake}.go").exists():
                time.sleep(0.05)

    spark = spark_session("jobs on a cluster", master=master)
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
    spark.stop()
    sys.stdout.write(json.dumps(done) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
