"""For the cluster's driver: executors write a backlog of `records/`, and can be held in the middle of it.

Tasks of records from `offset` on say in the folder `gate` that they are there, and go on when there is a file `open` in
it: with the stage `before` they have written nothing by then, with `after` their file, which the table doesn't know
yet; with `-` none waits. The answer is what was committed, offset by offset.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.spark_jobs import records, run_job

RECORDS_A_PART = 300
PARTS_A_COMMIT = 5
_WAITS_AT_MOST = 300.0  # seconds

WritePart = Callable[[str, tuple[int, int]], AddFile]


def held(gate: str, stage: str, offset: int, write_part: WritePart) -> WritePart:
    """The function with a gate. Sent to the executors as it is, for it is no global name."""

    def wait() -> None:
        folder, deadline = Path(gate), time.monotonic() + _WAITS_AT_MOST
        (folder / f"begun-{os.getpid()}").touch()
        while not (folder / "open").exists() and time.monotonic() < deadline:
            time.sleep(0.02)

    def gated(lake: str, part: tuple[int, int]) -> AddFile:
        if stage == "before" and part[0] >= offset:
            wait()
        made = write_part(lake, part)
        if stage == "after" and part[0] >= offset:
            wait()
        return made

    return gated


def main(spark: SparkSession, lake: str, gate: str, stage: str, offset: str) -> list[int]:
    """Write."""
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # the driver and two executors
        spark.range(1).count()
    committed: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "RECORDS_A_PART", RECORDS_A_PART)
        patch.setattr(records, "_PARTS_A_COMMIT", PARTS_A_COMMIT)
        if stage != "-":
            patch.setattr(records, "write_part", held(gate, stage, int(offset), records.write_part))
        run_job("records", lake, spark=spark, on_progress=lambda last, _: committed.append(last))
    return committed
