"""What the history tables cost and save: `python -m benchmarks.history [--records N] [--partitions N] [--runs N]`.

Catching up: records a second of CPU for the states alone, and of CPU and of wall time for the job with all its tables.

Then all partitions at an offset, early, in the middle, late and at the end, each way in turn and the shortest of the
runs: from `partition_history/` by Spark and by pyarrow, and against these the replays: Spark's fold of the log from
zero (`image_frame`, which gives the same rows), one process's compiled replay from zero and from the nearest snapshot,
which give an image. The goal is a fifth of a replay of the same engine from zero. Each way is also timed for what a
question mostly needs, four columns.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.spark.cpu import tree_cpu
from kraftlake.generate import Plan, generate_lake
from kraftlake.metadata_log import MetadataLog
from kraftlake.replay.fold import image_at
from kraftlake.replay.open_reader import LakeReader
from kraftlake.spark_jobs import build_snapshot, image_frame, run_job, spark_session, state_at, state_frame
from kraftlake.spark_jobs.history.effective_records import TransactionReader
from kraftlake.spark_jobs.history.partition_states import PartitionStates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOAL = 0.2
SPEED_GOAL = 1_000_000
FEW = ("topic", "partition", "leader", "isr")
OFFSETS = {"early": 0.2, "middle": 0.5, "late": 0.85, "end": 1.0}
_SNAPSHOT_AT = 0.45


def states_alone(lake: Path) -> float:
    """CPU seconds from the log's rows in memory to the states of partitions."""
    log = MetadataLog.open(lake)
    spent = 0.0
    states, reader = PartitionStates(), TransactionReader()
    for part in log.stretches(0, log.end_offset - 1):
        started = time.process_time()
        for records in reader.take(part):
            states.take(records)
        states.ended().table()
        spent += time.process_time() - started
    started = time.process_time()
    for _ in states.open_tables():
        pass
    return spent + time.process_time() - started


def catching_up(lake: Path, end: int, spark: SparkSession) -> dict[str, float]:
    """Records a second of the job `history` over a whole log, in a session that has started."""
    alone = end / states_alone(lake)
    cpu, wall = tree_cpu(), time.perf_counter()
    run_job("history", lake, spark=spark)
    cpu, wall = tree_cpu() - cpu, time.perf_counter() - wall
    return {
        "states alone: records a CPU second": round(alone),
        "the job: records a CPU second, the JVM's too": round(end / cpu),
        "the job: records a second": round(end / wall),
    }


def ways(spark: SparkSession, lake: Path, at: int) -> dict[str, Callable[[], int]]:
    """The ways to all partitions at an offset; each gives their number."""
    reader = LakeReader(MetadataLog.open(lake))

    def local(from_snapshot: bool | None) -> int:
        return int(image_at(reader, at, from_snapshot=from_snapshot).image.topics.partition_count)

    return {
        "table, Spark": lambda: state_frame(spark, lake, at).toArrow().num_rows,
        "table, Spark, 4 columns": lambda: state_frame(spark, lake, at).select(*FEW).toArrow().num_rows,
        "table, pyarrow": lambda: state_at(lake, at).num_rows,
        "table, pyarrow, 4 columns": lambda: state_at(lake, at, columns=FEW).num_rows,
        "replay, Spark": lambda: image_frame(spark, lake, at, from_snapshot=False).toArrow().num_rows,
        "replay, one process": lambda: local(False),
        "replay, one process, nearest snapshot": lambda: local(None),
    }


def shortest(runs: int, some: dict[str, Callable[[], int]]) -> dict[str, tuple[float, float]]:
    """Wall and CPU seconds of each way in its shortest run, taken in turn; all of them give as many partitions."""
    best: dict[str, tuple[float, float]] = {}
    counts: dict[str, int] = {}
    for _ in range(runs):
        for name, way in some.items():
            cpu, wall = tree_cpu(), time.perf_counter()
            counts[name] = way()
            took = time.perf_counter() - wall, tree_cpu() - cpu
            best[name] = min(best.get(name, took), took)
    assert len(set(counts.values())) == 1, f"the ways disagree: {counts}"
    return best


def verdicts(seconds: dict[str, tuple[float, float]]) -> dict[str, str]:
    """Each read of the table as a part of its replay, by wall and CPU time, against the goal."""
    pairs = {name: "replay, Spark" if "Spark" in name else "replay, one process" for name in seconds if "table" in name}
    found = {}
    for name, against in pairs.items():
        wall, cpu = (seconds[name][which] / max(seconds[against][which], 1e-3) for which in (0, 1))
        found[name] = f"{wall:.2f} of {against}, {cpu:.2f} of its CPU: {'met' if wall <= GOAL else 'MISSED'}"
    return found


def batch_end(log: MetadataLog, offset: int) -> int:
    """The last offset of a batch, at or before an offset."""
    if offset >= log.end_offset - 1:
        return log.end_offset - 1
    base: int = log.rows(offset, offset, ["batch"]).column("batch")[0].as_py()
    return max(base - 1, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--topic-size", type=int, default=100, help="partitions a topic")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the lake lies; by default among the temporary files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        lake = Path(scratch) / "lake"
        topics = max(given.partitions // given.topic_size, 1)
        plan = Plan(brokers=30, topics=topics, partitions=given.topic_size, records=given.records)
        end = generate_lake(lake, plan).end_offset
        spark = spark_session("benchmark")
        spark.range(1).count()
        result: dict[str, Any] = {"records": end, "partitions": plan.partition_count}
        result["catching up"] = catching_up(lake, end, spark)
        met = result["catching up"]["the job: records a second"] >= SPEED_GOAL
        result["catching up"]["goal: a million records a second"] = "met" if met else "MISSED"
        print(json.dumps(result["catching up"], indent=2), file=sys.stderr)
        log = MetadataLog.open(lake)
        build_snapshot(spark, lake, at_offset=batch_end(log, round(end * _SNAPSHOT_AT)))
        for name, part in OFFSETS.items():
            at = batch_end(log, round(end * part))
            seconds = shortest(given.runs, ways(spark, lake, at))
            result[f"{name}, offset {at}"] = {
                "wall and CPU seconds": {way: [round(s, 2) for s in took] for way, took in seconds.items()},
                "goal: a fifth of a replay from zero": verdicts(seconds),
            }
            print(json.dumps(result[f"{name}, offset {at}"], indent=2), file=sys.stderr)
        spark.stop()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
