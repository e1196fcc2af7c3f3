"""What the history tables cost and save: `python -m benchmarks.history [--records N] [--partitions N] [--runs N]`.

Catching up: records a second of CPU for the states alone, and of CPU and of wall time for the job with all its tables.

Then all partitions at an offset, early, in the middle, late and at the end, each way in turn and the shortest of the
runs: from `partition_history/`, and against that by a replay from zero. In one process the replay gives an image, and
the same rows as an Arrow table in a row of its own. In Spark the rows go to Python, or are consumed where they are, by
a hash of all columns, which leaves the table's own cost. The goal is a fifth of the replay that gives the same. That
the ways agree is checked: equal tables, equal hashes. What one process does counts its own CPU time, what Spark does
that of all processes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from benchmarks.spark.cpu import tree_cpu
from kraftlake.generate import Plan, generate_lake
from kraftlake.metadata_log import MetadataLog
from kraftlake.replay.fold import image_at
from kraftlake.replay.open_reader import LakeReader
from kraftlake.spark_jobs import build_snapshot, image_frame, run_job, spark_session, state_at, state_frame
from kraftlake.spark_jobs.fold.partition_table import PARTITION_SCHEMA, partition_table
from kraftlake.spark_jobs.history.effective_records import TransactionReader
from kraftlake.spark_jobs.history.partition_states import PartitionStates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


class Way(NamedTuple):
    """A way to all partitions at an offset, which gives their number, and what tells of its CPU time."""

    take: Callable[[], int]
    cpu: Callable[[], float]


REPLAY, TO_ARROW = "replay, one process, to an image", "replay, one process, to an Arrow table"
SPARK_REPLAY, SPARK_CONSUMED = "replay, Spark, to Python", "replay, Spark, consumed there"
AGAINST = {
    "table, one process": (REPLAY, TO_ARROW),
    "table, one process, dictionaries": (REPLAY, TO_ARROW),
    "table, one process, 4 columns": (REPLAY, TO_ARROW),
    "table, Spark, to Python": (SPARK_REPLAY,),
    "table, Spark, 4 columns, to Python": (SPARK_REPLAY,),
    "table, Spark, consumed there": (SPARK_CONSUMED,),
}
"""The reads of the table, and the replays that each is held against."""


def ways(spark: SparkSession, lake: Path, at: int) -> dict[str, Way]:
    """The ways to all partitions at an offset, those of one process first."""
    reader = LakeReader(MetadataLog.open(lake))

    def image(from_snapshot: bool | None = False) -> int:
        return int(image_at(reader, at, from_snapshot=from_snapshot).image.topics.partition_count)

    def replayed() -> DataFrame:
        return image_frame(spark, lake, at, from_snapshot=False)

    alone: dict[str, Callable[[], int]] = {
        "table, one process": lambda: state_at(lake, at).num_rows,
        "table, one process, dictionaries": lambda: state_at(lake, at, dictionaries=True).num_rows,
        "table, one process, 4 columns": lambda: state_at(lake, at, columns=FEW).num_rows,
        REPLAY: image,
        TO_ARROW: lambda: replayed_table(reader, at).num_rows,
        "replay, one process, nearest snapshot, to an image": lambda: image(None),
    }
    by_spark: dict[str, Callable[[], int]] = {
        "table, Spark, to Python": lambda: state_frame(spark, lake, at).toArrow().num_rows,
        "table, Spark, 4 columns, to Python": lambda: state_frame(spark, lake, at).select(*FEW).toArrow().num_rows,
        "table, Spark, consumed there": lambda: consumed(state_frame(spark, lake, at))[0],
        SPARK_REPLAY: lambda: replayed().toArrow().num_rows,
        SPARK_CONSUMED: lambda: consumed(replayed())[0],
    }
    return {name: Way(take, time.process_time) for name, take in alone.items()} | {
        name: Way(take, tree_cpu) for name, take in by_spark.items()
    }


def replayed_table(reader: LakeReader, at: int) -> pa.Table:
    """All partitions at an offset by a replay from zero."""
    return partition_table(image_at(reader, at, from_snapshot=False).image.topics)


def consumed(frame: DataFrame) -> tuple[int, int]:
    """The number of a frame's rows and a hash of what an image says of them; Spark makes all their columns for it."""
    from pyspark.sql import functions as f

    state = [name for name in PARTITION_SCHEMA.names if name in frame.columns]
    others = [name for name in frame.columns if name not in state]
    sums = [f.bit_xor(f.xxhash64(*names)).alias(alias) for alias, names in (("s", state), ("o", others)) if names]
    row = frame.agg(f.count("*").alias("rows"), *sums).collect()[0]
    return int(row["rows"]), int(row["s"])


def check_equal(spark: SparkSession, lake: Path, at: int) -> None:
    """Stop where the table and a replay differ in a partition, in one process or in Spark."""
    key = [("topic_id", "ascending"), ("partition", "ascending")]
    replayed = replayed_table(LakeReader(MetadataLog.open(lake)), at)
    for dictionaries in (False, True):
        read = state_at(lake, at, columns=replayed.column_names, dictionaries=dictionaries).cast(replayed.schema)
        assert read.sort_by(key).equals(replayed.sort_by(key)), f"table and replay differ at {at}"
    hashes = consumed(state_frame(spark, lake, at)), consumed(image_frame(spark, lake, at, from_snapshot=False))
    assert hashes[0] == hashes[1], f"table and replay differ in Spark at {at}: {hashes}"


def shortest(runs: int, some: dict[str, Way]) -> dict[str, tuple[float, float]]:
    """The fewest wall and CPU seconds of each way in some runs, taken in turn; all of them give as many partitions."""
    best: dict[str, tuple[float, float]] = {}
    counts: dict[str, int] = {}
    for _ in range(runs):
        for name, way in some.items():
            cpu, wall = way.cpu(), time.perf_counter()
            counts[name] = way.take()
            took = time.perf_counter() - wall, way.cpu() - cpu
            before = best.get(name, took)
            best[name] = min(before[0], took[0]), min(before[1], took[1])
    assert len(set(counts.values())) == 1, f"the ways disagree: {counts}"
    return best


def verdicts(seconds: dict[str, tuple[float, float]]) -> dict[str, str]:
    """Each read of the table as a part of its replays, by wall and CPU time, against the goal."""
    found = {}
    for name, replays in AGAINST.items():
        for replay in replays:
            parts = [seconds[name][which] / max(seconds[replay][which], 1e-3) for which in (0, 1)]
            said = [f"{part:.2f} {'met' if part <= GOAL else 'MISSED'}" for part in parts]
            found[f"{name} / {replay}"] = f"wall {said[0]}, CPU {said[1]}"
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
            check_equal(spark, lake, at)
            seconds = shortest(given.runs, ways(spark, lake, at))
            result[f"{name}, offset {at}"] = {
                "wall and CPU seconds": {way: [round(s, 3) for s in took] for way, took in seconds.items()},
                "goal: a fifth of a replay from zero": verdicts(seconds),
            }
            print(json.dumps(result[f"{name}, offset {at}"], indent=2), file=sys.stderr)
        spark.stop()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
