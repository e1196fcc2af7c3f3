"""What the history tables cost and save: `python -m benchmarks.history [--records N] [--partitions N] [--runs N]`.

Catching up: records a second of CPU for the states alone, and of CPU and of wall time for the job with all its tables.

Then all partitions at offsets spread evenly over the log, in the middle of each of so many equal parts of it, each way
in turn and the shortest of the runs: from `partition_history/`, and against that by a replay from zero. The goal is a
fifth of the replay that gives the same: the rows as an Arrow table, in one process that goes on or in one of its own
with all its imports; in Spark, rows that go to Python, or that are consumed where they are, by a hash of all columns,
which leaves the table's own cost. To an image, which has no rows yet, a replay takes less. For each read that is shown
for each offset, and for all of them as the mean of these parts, as the part that the total is, and the worst.

That the ways agree is checked: equal tables, equal hashes. What one process does counts its own CPU time, what Spark
does that of all processes. `--no-spark` leaves Spark's ways out, which take most of the time.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from benchmarks.spark.cpu import tree_cpu
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.log.delta_chunk import LogBegin
from kraftlake.replay.log.log_replay import LogReplay
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.spark_jobs import build_snapshot, image_frame, run_job, spark_session, state_frame
from kraftlake.tables.history.state_at import state_at
from kraftlake.tables.history.writers import PartitionHistoryWriter
from kraftlake.tables.image_partitions import partition_table
from kraftlake.tables.partition_columns import PARTITION_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOAL = 0.2
SPEED_GOAL = 1_000_000
FEW = ("topic", "partition", "leader", "isr")
_SNAPSHOT_AT = 0.45


def states_alone(lake: Path) -> float:
    """CPU seconds from the log's rows in memory to the states of partitions."""
    log = MetadataLog.open(lake)
    spent = 0.0
    replay, writer = LogReplay(), PartitionHistoryWriter()
    writer.open(replay, LogBegin())
    for rows in log.batch_rows(0, log.end_offset - 1):
        started = time.process_time()
        for chunk in replay.take(rows):
            writer.take_deltas(chunk)
        writer.drain()
        spent += time.process_time() - started
    started = time.process_time()
    for _ in writer.open_tables():
        pass
    return spent + time.process_time() - started


def catching_up(lake: Path, end: int, spark: SparkSession) -> dict[str, Any]:
    """Records a second of the job `history` over a whole log, in a session that has started."""
    alone = end / states_alone(lake)
    cpu, wall = tree_cpu(), time.perf_counter()
    run_job("history", lake, spark=spark)
    cpu, wall = tree_cpu() - cpu, time.perf_counter() - wall
    return {
        "states alone: records a CPU second": round(alone),
        "the job: records a CPU second, the JVM's too": round(end / cpu),
        "the job: records a second": round(end / wall),
        "goal: a million records a second": "met" if end / wall >= SPEED_GOAL else "MISSED",
    }


class Way(NamedTuple):
    """A way to all partitions at an offset, which gives their number, and what measures its CPU time."""

    take: Callable[[], int]
    cpu: Callable[[], float]


REPLAY, TO_ARROW = "replay, one process, to an image", "replay, one process, to an Arrow table"
OWN_REPLAY = "replay, a process of its own, to an Arrow table"
SPARK_REPLAY, SPARK_CONSUMED = "replay, Spark, to Python", "replay, Spark, consumed there"
AGAINST = {
    "table, one process": (REPLAY, TO_ARROW),
    "table, one process, dictionaries": (REPLAY, TO_ARROW),
    "table, one process, 4 columns": (REPLAY, TO_ARROW),
    "table, a process of its own": (OWN_REPLAY,),
    "table, a process of its own, dictionaries": (OWN_REPLAY,),
    "table, Spark, to Python": (SPARK_REPLAY,),
    "table, Spark, 4 columns, to Python": (SPARK_REPLAY,),
    "table, Spark, consumed there": (SPARK_CONSUMED,),
}
"""The reads of the table, and the replays that each is held against."""


_STATE = "from kraftlake.tables.history.state_at import state_at; print(state_at(lake, at%s).num_rows)"
_OWN = {
    "table, a process of its own": _STATE % "",
    "table, a process of its own, dictionaries": _STATE % ", dictionaries=True",
    OWN_REPLAY: """
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.tables.image_partitions import partition_table
image = image_at(LakeReader(MetadataLog.open(lake)), at, from_snapshot=False).image
print(partition_table(image.topics).num_rows)
""",
}
"""Programs that do one thing and end."""


def ways(spark: SparkSession | None, lake: Path, at: int) -> dict[str, Way]:
    """The ways to all partitions at an offset, those of one process first, Spark's where there is a session."""
    reader = LakeReader(MetadataLog.open(lake))

    def image(from_snapshot: bool | None = False) -> int:
        return int(image_at(reader, at, from_snapshot=from_snapshot).image.topics.partition_count)

    alone: dict[str, Callable[[], int]] = {
        "table, one process": lambda: state_at(lake, at).num_rows,
        "table, one process, dictionaries": lambda: state_at(lake, at, dictionaries=True).num_rows,
        "table, one process, 4 columns": lambda: state_at(lake, at, columns=FEW).num_rows,
        REPLAY: image,
        TO_ARROW: lambda: replayed_table(reader, at).num_rows,
        "replay, one process, nearest snapshot, to an image": lambda: image(None),
    }
    found = {name: Way(take, time.process_time) for name, take in alone.items()}
    found |= {name: Way(partial(own_process, program, lake, at), children_cpu) for name, program in _OWN.items()}
    return found if spark is None else found | spark_ways(spark, lake, at)


def spark_ways(spark: SparkSession, lake: Path, at: int) -> dict[str, Way]:
    """Those of Spark."""

    def replayed() -> DataFrame:
        return image_frame(spark, lake, at, from_snapshot=False)

    found: dict[str, Callable[[], int]] = {
        "table, Spark, to Python": lambda: state_frame(spark, lake, at).toArrow().num_rows,
        "table, Spark, 4 columns, to Python": lambda: state_frame(spark, lake, at).select(*FEW).toArrow().num_rows,
        "table, Spark, consumed there": lambda: consumed(state_frame(spark, lake, at))[0],
        SPARK_REPLAY: lambda: replayed().toArrow().num_rows,
        SPARK_CONSUMED: lambda: consumed(replayed())[0],
    }
    return {name: Way(take, tree_cpu) for name, take in found.items()}


def own_process(program: str, lake: Path, at: int) -> int:
    """What a program says that is run by a new Python, which has no more than `lake` and `at`."""
    given = f"lake, at = {str(lake)!r}, {at}\n"
    return int(subprocess.run([sys.executable, "-c", given + program], check=True, stdout=subprocess.PIPE).stdout)


def children_cpu() -> float:
    """CPU seconds of the processes that this one has started and waited for."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


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


def check_equal(spark: SparkSession | None, lake: Path, at: int) -> None:
    """Stop where the table and a replay differ in a partition, in one process or in Spark."""
    key = [("topic_id", "ascending"), ("partition", "ascending")]
    replayed = replayed_table(LakeReader(MetadataLog.open(lake)), at)
    for dictionaries in (False, True):
        read = state_at(lake, at, columns=replayed.column_names, dictionaries=dictionaries).cast(replayed.schema)
        assert read.sort_by(key).equals(replayed.sort_by(key)), f"table and replay differ at {at}"
    if spark is None:
        return
    hashes = consumed(state_frame(spark, lake, at)), consumed(image_frame(spark, lake, at, from_snapshot=False))
    assert hashes[0] == hashes[1], f"table and replay differ in Spark at {at}: {hashes}"


def shortest(runs: int, some: dict[str, Way]) -> Seconds:
    """The fewest wall and CPU seconds of each way in some runs, taken in turn; all of them give as many partitions."""
    best: Seconds = {}
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


Seconds = dict[str, tuple[float, float]]
"""The wall and CPU seconds of each way."""


def parts_of(seconds: Seconds) -> dict[str, tuple[float, float]]:
    """Each read of the table that was taken as a part of each of its replays, by wall and CPU time."""
    pairs = [(name, replay) for name, replays in AGAINST.items() for replay in replays if name in seconds]
    return {
        f"{name} / {replay}": (
            seconds[name][0] / max(seconds[replay][0], 1e-3),
            seconds[name][1] / max(seconds[replay][1], 1e-3),
        )
        for name, replay in pairs
    }


def verdict(part: tuple[float, float]) -> str:
    """A part by wall and CPU time, held against the goal."""
    said = [f"{some:.2f} {'met' if some <= GOAL else 'MISSED'}" for some in part]
    return f"wall {said[0]}, CPU {said[1]}"


def over_all(found: Sequence[Seconds]) -> dict[str, dict[str, str]]:
    """For each read and replay the mean of its parts at some offsets, the part that its total is, and the worst."""
    parts = [parts_of(seconds) for seconds in found]
    totals = parts_of({name: _each(sum, [seconds[name] for seconds in found]) for name in found[0]})
    return {
        name: {
            "mean of the parts": verdict(_each(fmean, [part[name] for part in parts])),
            "part of the total": verdict(total),
            "worst part": verdict(_each(max, [part[name] for part in parts])),
        }
        for name, total in totals.items()
    }


def _each(take: Callable[[Iterable[float]], float], pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The same of the first of some pairs and of the second."""
    return take(pair[0] for pair in pairs), take(pair[1] for pair in pairs)


def batch_end(log: MetadataLog, offset: int) -> int:
    """The last offset of a batch, at or before an offset."""
    if offset >= log.end_offset - 1:
        return log.end_offset - 1
    base: int = log.rows(offset, offset, ["batch"]).column("batch")[0].as_py()
    return max(base - 1, 0)


def states(given: argparse.Namespace, spark: SparkSession | None, lake: Path, end: int) -> dict[str, Any]:
    """All partitions at offsets spread over the log, each way."""
    log = MetadataLog.open(lake)
    if spark is not None:
        build_snapshot(spark, lake, at_offset=batch_end(log, round(end * _SNAPSHOT_AT)))
    result: dict[str, Any] = {}
    found: list[Seconds] = []
    for number in range(given.offsets):
        at = batch_end(log, round(end * (number + 0.5) / given.offsets))
        check_equal(spark, lake, at)
        found.append(shortest(given.runs, ways(spark, lake, at)))
        result[f"offset {at}"] = {
            "wall and CPU seconds": {way: [round(s, 3) for s in took] for way, took in found[-1].items()},
            "goal: a fifth of a replay from zero": {name: verdict(part) for name, part in parts_of(found[-1]).items()},
        }
        print(json.dumps(result[f"offset {at}"], indent=2), file=sys.stderr)
    return result | {f"all {given.offsets} offsets: a fifth of a replay from zero": over_all(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--topic-size", type=int, default=100, help="partitions a topic")
    parser.add_argument("--offsets", type=int, default=8, help="spread evenly over the log")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-spark", action="store_true", help="leave out what Spark does")
    parser.add_argument("--folder", type=Path, help="where the lake lies; by default among the temporary files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as scratch:
        lake = Path(scratch) / "lake"
        topics = max(given.partitions // given.topic_size, 1)
        plan = Plan(brokers=30, topics=topics, partitions=given.topic_size, records=given.records)
        end = generate_lake(lake, plan).end_offset
        result: dict[str, Any] = {"records": end, "partitions": plan.partition_count}
        spark = None
        if given.no_spark:
            run_job("history", lake)
        else:
            spark = spark_session("benchmark")
            spark.range(1).count()
            result["catching up"] = catching_up(lake, end, spark)
            print(json.dumps(result["catching up"], indent=2), file=sys.stderr)
        result |= states(given, spark, lake, end)
        if spark is not None:
            spark.stop()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
