"""A driver for the cluster: makes the tables of a lake's backlog in steps.

`python -m tests.spark_jobs.cluster_backlog MASTER LAKE STEP_RECORDS PAUSE_AT`: after step number PAUSE_AT (0: never) it
makes the file LAKE.paused and waits for LAKE.go; then it prints how many steps there were.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.storage.location import fixed_location
from kraftlake.spark_jobs import spark_session
from kraftlake.spark_jobs.shard_run import run_backlog
from kraftlake.tables.jobs import ALL


def main(master: str, lake: str, step_records: str, pause_at: str) -> None:
    steps = 0

    def pause(_: int, __: int) -> None:
        nonlocal steps
        steps += 1
        if steps == int(pause_at):
            Path(f"{lake}.paused").touch()
            while not Path(f"{lake}.go").exists():
                time.sleep(0.05)

    spark = spark_session("a backlog on a cluster", master=master)
    place = fixed_location(lake)
    last = MetadataLog.open(place).end_offset - 1
    run_backlog(spark, place, ALL.tables, last, step_records=int(step_records), on_progress=pause)
    spark.stop()
    sys.stdout.write(json.dumps(steps) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
