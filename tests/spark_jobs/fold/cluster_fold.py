"""A driver for the cluster: builds a snapshot and counts local changes, and can be held in the middle of it.

`python -m tests.spark_jobs.fold.cluster_fold MASTER LAKE GATE STAGE`: with STAGE `read` or `fold` the executors say in
the folder GATE that they have begun that stage, and go on when there is a file `open` in it; with STAGE `-` they don't.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kraftlake.spark_jobs import build_snapshot, local_changes_frame, spark_session
from kraftlake.spark_jobs.fold import frames

_WAITS_AT_MOST = 300.0  # seconds


def held(gate: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, begun only when the gate is open. Sent to the executors as it is, for it is this program's own."""

    def gated(*arguments: Any, **options: Any) -> Any:
        folder, deadline = Path(gate), time.monotonic() + _WAITS_AT_MOST
        (folder / f"begun-{os.getpid()}").touch()
        while not (folder / "open").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return function(*arguments, **options)

    return gated


def main(master: str, lake: str, gate: str, stage: str) -> None:
    """Build, count, print."""
    spark = spark_session("cluster fold", master=master)
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # the driver and two executors
        spark.range(1).count()
    if stage == "read":
        frames.read_chunks = held(gate, frames.read_chunks)
    if stage == "fold":
        frames.result_of = held(gate, frames.result_of)
    built = build_snapshot(spark, lake, shards=4)
    frame = local_changes_frame(spark, lake, built.offset - 5_000, built.offset, shards=4)
    counts = {f"{row.broker} {row.change}": row["count"] for row in frame.groupBy("broker", "change").count().collect()}
    spark.stop()
    sys.stdout.write(json.dumps({"name": built.name, "records": built.records, "changes": counts}) + "\n")


def begun(gate: Path) -> Iterator[str]:
    """The Python workers that wait at the gate."""
    for entry in gate.glob("begun-*"):
        yield entry.name


if __name__ == "__main__":
    main(*sys.argv[1:5])
