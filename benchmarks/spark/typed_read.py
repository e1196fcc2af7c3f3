"""What typed reads cost: `python -m benchmarks.spark.typed_read [--records 1M]`, CPU seconds of all processes.

Each line is a read of the same generated lake: by one process without Spark, then through Spark on one core, where a
second read of the same kind counts (the first one starts the Python workers).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.spark.cpu import tree_cpu
from kraftlake.generate import Plan, generate_lake
from kraftlake.records.typed_rows import typed_schema
from kraftlake.spark_jobs.record_scan import RecordScan, open_scanned, parts_of, read_part

CHANGE = "PARTITION_CHANGE_RECORD"
FEW = ("offset", "partition_id", "topic_id", "leader", "isr")
DECODE_GOAL = 1.0
"""Million records a CPU second, read from the lake's files and decoded by an executor's Python."""


def in_one_process(lake: Path, only: str | None, names: Sequence[str] | None) -> Callable[[], int]:
    """What a task does of the whole lake, without Spark around it."""
    schema = typed_schema(only)
    wanted = schema if names is None else pa.schema([schema.field(name) for name in names])

    def read() -> int:
        source, first, last = open_scanned(str(lake), None, None)
        scan = RecordScan(source=str(lake), wanted=wanted, only=only, first=first, last=last)
        return sum(table.num_rows for part in parts_of(source, first, last) for table in read_part(scan, *part))

    return read


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.typed_read")
    parser.add_argument("--records", type=int, default=1_000_000)
    records = parser.parse_args().records
    from kraftlake.spark_jobs import read_records, spark_session

    with tempfile.TemporaryDirectory() as scratch:
        lake = Path(scratch) / "lake"
        generate_lake(lake, Plan(topics=2_000, records=records))
        spark = spark_session("typed read", master="local[1]")

        def through_spark(only: str | None, names: Sequence[str] | None) -> Callable[[], int]:
            from pyspark.sql import functions as f

            frame = read_records(spark, lake, only, columns=names)
            return lambda: max(frame.agg(*[f.count(name) for name in frame.columns]).first())

        reads = {
            "one process, 5 columns of one type": (in_one_process(lake, CHANGE, FEW), DECODE_GOAL),
            "one process, one type": (in_one_process(lake, CHANGE, None), DECODE_GOAL),
            "one process, all types": (in_one_process(lake, None, None), DECODE_GOAL),
            "Spark, 5 columns of one type": (through_spark(CHANGE, FEW), None),
            "Spark, one type": (through_spark(CHANGE, None), None),
            "Spark, all types": (through_spark(None, None), None),
        }
        for what, (read, goal) in reads.items():
            read()
            cpu, wall = tree_cpu(), time.perf_counter()
            rows = read()
            cpu, wall = tree_cpu() - cpu, time.perf_counter() - wall
            rate = rows / cpu / 1e6
            verdict = "" if goal is None else f"  goal {goal:g}: {'met' if rate >= goal else 'MISSED'}"
            sys.stdout.write(f"{what:36} {rows:>9,} rows {rate:5.2f} M/CPU s  {wall:5.1f} s{verdict}\n")
            sys.stdout.flush()
        spark.stop()


if __name__ == "__main__":
    main()
