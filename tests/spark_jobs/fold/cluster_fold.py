"""For the cluster's driver: builds a snapshot and counts local changes, and can be held in the middle of it.

With the stage `read` or `fold` the executors say in the folder `gate` that they have begun that stage, and go on when
there is a file `open` in it; with the stage `-` they don't.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kraftlake.spark_jobs import build_snapshot, local_changes_frame
from kraftlake.spark_jobs.fold import frames

_WAITS_AT_MOST = 300.0  # seconds


def held(gate: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, begun only when the gate is open; sent to the executors as it is, for it is no global name."""

    def gated(*arguments: Any, **options: Any) -> Any:
        folder, deadline = Path(gate), time.monotonic() + _WAITS_AT_MOST
        (folder / f"begun-{os.getpid()}").touch()
        while not (folder / "open").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return function(*arguments, **options)

    return gated


def main(spark: SparkSession, lake: str, gate: str, stage: str) -> dict[str, Any]:
    """Build, count."""
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # the driver and two executors
        spark.range(1).count()
    with pytest.MonkeyPatch.context() as patch:
        if stage == "read":
            patch.setattr(frames, "_read", held(gate, frames._read))
        if stage == "fold":
            patch.setattr(frames, "_results", held(gate, frames._results))
        built = build_snapshot(spark, lake, shards=4)
        frame = local_changes_frame(spark, lake, built.offset - 5_000, built.offset, shards=4)
        rows = frame.groupBy("broker", "change").count().collect()
    counts = {f"{row.broker} {row.change}": row["count"] for row in rows}
    return {"name": built.name, "records": built.records, "changes": counts}


def begun(gate: Path) -> Iterator[str]:
    """The Python workers that wait at the gate."""
    for entry in gate.glob("begun-*"):
        yield entry.name
