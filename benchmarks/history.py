"""What the history tables cost and save: `python -m benchmarks.history [--records N] [--partitions N] [--runs N]`.

Catching up: records a second of CPU, for the states alone and with all tables written. Then everything at one offset,
in turn: from `partition_history/` by Spark, by pyarrow with files skipped by their statistics, derived by Spark from
the same rows without their ends, replayed by one process from the log alone, and by the job `replay` once.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.generate import Plan, generate_lake
from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.delta_log import read_table
from kraftlake.replay.fold import image_at
from kraftlake.replay.open_reader import LakeReader
from kraftlake.spark_jobs import run_job, spark_session
from kraftlake.spark_jobs.history.effective_records import TransactionReader
from kraftlake.spark_jobs.history.partition_states import PartitionStates

AT = """SELECT * FROM delta.`{table}`
WHERE valid_from_offset <= {at} AND (valid_to_offset > {at} OR valid_to_offset IS NULL)"""
DERIVED = """SELECT * FROM (
  SELECT *, row_number() OVER (PARTITION BY topic_id, partition ORDER BY valid_from_offset DESC) AS number
  FROM delta.`{table}` WHERE valid_from_offset <= {at}
) WHERE number = 1"""


def states_alone(lake: Path) -> float:
    """CPU seconds from the log's rows to the states of partitions."""
    log = MetadataLog.open(lake)
    parts = list(log.stretches(0, log.end_offset - 1))
    started = time.process_time()
    states, reader = PartitionStates(), TransactionReader()
    for part in parts:
        for records in reader.take(part):
            states.take(records)
        states.ended()
    for _ in states.open_tables():
        pass
    return time.process_time() - started


def by_pyarrow(table: Path, at: int) -> pa.Table:
    """Everything at an offset, from the files that can hold it."""
    import pyarrow.parquet as pq

    found = []
    for file in read_table(table).files.values():
        stats = file.statistics
        assert stats is not None
        ended = stats.null_counts["valid_to_offset"] == 0 and stats.max_values["valid_to_offset"] <= at
        if ended or stats.min_values["valid_from_offset"] > at:
            continue
        filters = (pc.field("valid_from_offset") <= at) & (
            (pc.field("valid_to_offset") > at) | pc.field("valid_to_offset").is_null()
        )
        found.append(pq.read_table(table / file.path, filters=filters))
    return pa.concat_tables(found)


def shortest(runs: int, ways: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """The shortest wall time of each way, taken in turn, and what it gave."""
    best: dict[str, float] = {}
    gave: dict[str, Any] = {}
    for _ in range(runs):
        for name, way in ways.items():
            started = time.perf_counter()
            gave[name] = way()
            best[name] = min(best.get(name, 1e9), time.perf_counter() - started)
    return best, gave


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the lake lies; by default among the temporary files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        lake = Path(scratch) / "lake"
        plan = Plan(brokers=30, topics=given.partitions // 20, partitions=20, records=given.records)
        end = generate_lake(lake, plan).end_offset
        states_alone(lake)
        result: dict[str, Any] = {"records": end, "partitions": plan.partition_count}
        result["states: records a CPU second"] = round(end / states_alone(lake))
        started = time.process_time()
        spark = spark_session("benchmark")
        run_job("history", lake, spark=spark)
        result["job history, Python's part: records a CPU second"] = round(end / (time.process_time() - started))
        at, table = end // 2, lake / "partition_history"
        reader = LakeReader(MetadataLog.open(lake))
        best, gave = shortest(
            given.runs,
            {
                "from the table by Spark": lambda: spark.sql(AT.format(table=table, at=at)).toArrow().num_rows,
                "from the table by pyarrow": lambda: by_pyarrow(table, at).num_rows,
                "derived by Spark": lambda: spark.sql(DERIVED.format(table=table, at=at)).toArrow().num_rows,
                "replayed by one process": lambda: (
                    image_at(reader, at, from_snapshot=False).image.topics.partition_count
                ),
            },
        )
        started = time.perf_counter()
        run_job("replay", lake, spark=spark)
        best["replayed by the job `replay`, for half of the log"] = (time.perf_counter() - started) / 2
        spark.stop()
        result["partitions at the offset"] = gave
        result["seconds"] = {name: round(seconds, 3) for name, seconds in best.items()}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
