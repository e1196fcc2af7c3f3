"""What typed reads cost: `python -m benchmarks.spark.typed_read [--records 5M]`, CPU seconds of all processes.

Each line is a read of the same generated lake: by one process without Spark, then through Spark into its rows on one
core, in a long-lived session, where the best of some later reads counts (the first one starts the Python workers and
compiles). Beside it stands the same number of rows of the same columns that a Python data source has ready (a control:
what Spark itself takes), and `records/`, the table that a job keeps, read by Spark's own reader of Parquet. A query for
a hundred rows says what each query costs before its first row.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.lakes import number
from benchmarks.spark.cpu import cpu_by_process, cpu_since
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.records.typed_rows import typed_schema
from kraftlake.tables.record_scan import RecordScan, open_scanned, parts_of, read_part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE = "PARTITION_CHANGE_RECORD"
FEW = ("offset", "partition_id", "topic_id", "leader", "isr")
DECODE_GOAL = 1.0
"""Million records a CPU second, read from the lake's files and decoded, in one process and into Spark's rows."""

_READS = 3
_CONTROL_BATCHES = 16

READS: dict[str, tuple[str | None, Sequence[str] | None]] = {
    "5 columns of one type": (CHANGE, FEW),
    "one type": (CHANGE, None),
    "all types": (None, None),
}


def scan_of(lake: Path, only: str | None, names: Sequence[str] | None) -> RecordScan:
    """The scan of a whole lake."""
    schema = typed_schema(only)
    wanted = schema if names is None else pa.schema([schema.field(name) for name in names])
    _, first, last = open_scanned(str(lake), None, None)
    return RecordScan(source=str(lake), wanted=wanted, only=only, first=first, last=last)


def in_one_process(scan: RecordScan) -> Callable[[], int]:
    """What tasks do of a whole lake, without Spark around it."""

    def read() -> int:
        source, first, last = open_scanned(scan.source, None, None)
        return sum(table.num_rows for part in parts_of(source, first, last) for table in read_part(scan, *part))

    return read


def counted(frame: DataFrame) -> Callable[[], int]:
    """Reads all columns of a frame, a row at a time."""
    from pyspark.sql import functions as f

    columns = [f.count(name) for name in frame.columns]
    return lambda: max(frame.agg(*columns).first())


def table_frame(spark: SparkSession, lake: Path, only: str | None, names: Sequence[str] | None) -> DataFrame:
    """The same rows from the table `records/`."""
    table = spark.read.format("delta").load(str(lake / "records"))
    if only is None:
        return table
    schema = typed_schema(only)
    place = set(table.columns)
    wanted = [name if name in place else f"{only.lower()}.{name}" for name in names or schema.names]
    return table.where(f"type = '{only}'").selectExpr(*wanted)


def measured(read: Callable[[], int], times: int) -> tuple[int, float, float]:
    """Rows, CPU and wall seconds of the read that took the least CPU of so many, after a first one."""
    read()
    best = (0, float("inf"), 0.0)
    for _ in range(times):
        before, wall = cpu_by_process(), time.perf_counter()
        rows = read()
        best = min(best, (rows, cpu_since(before), time.perf_counter() - wall), key=lambda run: run[1])
    return best


def show(what: str, read: Callable[[], int], goal: float | None = None, times: int = _READS) -> int:
    """Measure and print a line; gives the rows."""
    rows, cpu, wall = measured(read, times)
    rate = rows / cpu / 1e6
    verdict = "" if goal is None else f"  goal {goal:g}: {'met' if rate >= goal else 'MISSED'}"
    speed = f"{rate:5.2f} M/CPU s" if rows > 1_000 else f"{cpu:5.2f} CPU s  "
    sys.stdout.write(f"{what:44} {rows:>9,} rows {speed}  {wall:5.1f} s{verdict}\n")
    sys.stdout.flush()
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.typed_read")
    parser.add_argument("--records", type=number, default=5_000_000)
    records = parser.parse_args().records
    from benchmarks.spark.made_rows import made_rows
    from kraftlake.spark_jobs import read_records, run_job, spark_session

    with tempfile.TemporaryDirectory() as scratch:
        lake = Path(scratch) / "lake"
        generate_lake(lake, Plan(topics=2_000, records=records))
        spark = spark_session("typed read", master="local[1]", long_lived=True)
        run_job("records", lake, spark=spark)
        show("Spark, 100 records", counted(read_records(spark, lake, columns=FEW[:1], start_offset=1, end_offset=100)))
        for what, (only, names) in READS.items():
            scan = scan_of(lake, only, names)
            show(f"one process, {what}", in_one_process(scan), DECODE_GOAL, times=1)
            rows = show(f"Spark, {what}", counted(read_records(spark, lake, only, columns=names)), DECODE_GOAL)
            batches = [batch for table in islice(read_part(scan, scan.first, scan.last), _CONTROL_BATCHES)
                       for batch in table.to_batches()]  # fmt: skip
            control = made_rows(spark, batches, rows, Path(scratch) / "made.arrow")
            show("  control: as many rows that are ready", counted(control), times=2)
            show("  of the table records/", counted(table_frame(spark, lake, only, names)), times=2)
        spark.stop()


if __name__ == "__main__":
    main()
