"""How long an append takes to reach a table: `python -m benchmarks.spark.latency LAKE [--connect]`; prints JSON.

One change of a partition at a time is appended to a generated lake while the job `replay` streams it, until its rows
are in `local_changes/`; then as many while an `image_stream` does, until its receiver has written the offset to a file;
then as many while a stream runs over the same log that does nothing but take its rows. With `--connect` the first two
run in a session of Spark Connect, whose micro-batches and receiver are in another process. LAKE is changed by it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.spark_jobs import ReplayListener, StreamOptions, image_stream, run_job, spark_session

APPENDS = 60
TRIGGER = "50 milliseconds"
_WAITS_AT_MOST = 120.0


class Appender:
    """Appends changes of partitions to a lake."""

    def __init__(self, lake: str) -> None:
        self.log = MetadataLog.open(lake)
        image = image_at(LakeReader(self.log), self.log.end_offset - 1).image
        self._topics = [topic.id for topic in list(image.topics.topics_by_id().values())[:50]]
        self._epoch = self.log.claim(3000)

    def append(self, count: int = 1) -> int:
        """Append so many changes more in one batch; the last one's offset."""
        first = self.log.end_offset
        records = [
            ApiMessageAndVersion(
                r.PartitionChangeRecord(partition_id=0, topic_id=self._topics[offset % len(self._topics)], isr=(1,)), 1
            )
            for offset in range(first, first + count)
        ]
        self.log.append([RecordBatch.of(first, self._epoch, time.time_ns() // 1_000_000, records)], epoch=self._epoch)
        return first + count - 1


class Commits:
    """The commits of a table."""

    def __init__(self, table: Path) -> None:
        self._log = table / "_delta_log"
        self._next = 1 + max(int(path.stem) for path in self._log.glob("*.json"))
        self._offset = -1

    def offset(self) -> int:
        """The last offset of the newest commit."""
        while (commit := self._log / f"{self._next:020d}.json").exists():
            actions = [json.loads(line) for line in commit.read_text("utf-8").splitlines()]
            self._offset = max([self._offset, *(action["txn"]["version"] for action in actions if "txn" in action)])
            self._next += 1
        return self._offset


def one_by_one(appender: Appender, reached: Callable[[], int]) -> list[float]:
    """Seconds from each append's return until `reached` says its offset."""
    taken = []
    for _ in range(APPENDS):
        offset, begun = appender.append(), time.perf_counter()
        while reached() < offset:
            if time.perf_counter() - begun > _WAITS_AT_MOST:
                sys.exit(f"offset {offset} was not reached")
            time.sleep(0.002)
        taken.append(time.perf_counter() - begun)
    return taken[APPENDS // 6 :]  # the first ones warm the JVM up


def replayed(lake: str, spark: Any) -> tuple[list[float], list[int]]:
    """Latencies, and durations of micro-batches (ms), of the job `replay`."""
    run_job("replay", lake, spark=spark)
    appender = Appender(lake)
    commits, durations = Commits(Path(lake, "local_changes")), list[int]()
    last = appender.log.end_offset + APPENDS - 1
    job = threading.Thread(
        target=lambda: run_job(
            "replay",
            lake,
            spark=spark,
            options=StreamOptions(trigger=TRIGGER, until_offset=last),
            listener=ReplayListener(lambda progress: durations.append(progress.duration_ms)),
        )
    )
    job.start()
    taken = one_by_one(appender, commits.offset)
    job.join()
    return taken, durations[APPENDS // 6 :]


def received(lake: str, spark: Any) -> list[float]:
    """Latencies of an `image_stream`, which starts at the end of the log."""
    appender = Appender(lake)
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/offset"

        def receive(_: Any, __: Any, manifest: Any) -> None:
            written = Path(f"{file}.new")
            written.write_text(str(manifest.provenance.offset))
            written.rename(file)

        writer = image_stream(spark, lake, receive, starting_offset="latest")
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(processingTime=TRIGGER).start()
        try:
            while not Path(file).exists():  # the load of the image
                query.awaitTermination(0.1)
            return one_by_one(appender, lambda: int(Path(file).read_text()))
        finally:
            query.stop()


def emptied(lake: str, spark: Any) -> list[int]:
    """Durations of micro-batches (ms) of the same source that do nothing with the rows."""
    appender = Appender(lake)
    appender.append()
    reached = [-1]

    def take(frame: Any, _: int) -> None:
        rows = frame.toArrow()
        if rows.num_rows:
            reached.append(max(rows["last"].to_pylist()))

    stream = spark.readStream.format("kraft").options(columns="offsets", startingOffset=appender.log.end_offset - 1)
    query = stream.load(lake).writeStream.foreachBatch(take)
    running = query.trigger(processingTime=TRIGGER).start()
    one_by_one(appender, lambda: reached[-1])
    durations = [progress.batchDuration for progress in running.recentProgress if progress.numInputRows]
    running.stop()
    return durations[APPENDS // 6 :]


def connected() -> Any:
    """A session of Spark Connect, whose server this process starts."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    daemon = "kraftlake.spark_jobs.worker_daemon"
    return SparkSession.builder.config("spark.python.daemon.module", daemon).remote("local[2]").getOrCreate()


def main() -> None:
    """Measure and print."""
    on_connect, lake = "--connect" in sys.argv, sys.argv[1]
    spark = connected() if on_connect else spark_session("latency benchmark")
    taken, durations = replayed(lake, spark)
    images = received(lake, spark)
    figures = {
        "latency_p50": float(np.percentile(taken, 50)),
        "latency_p99": float(np.percentile(taken, 99)),
        "image_p50": float(np.percentile(images, 50)),
        "image_p99": float(np.percentile(images, 99)),
        "batch_ms": float(np.median(durations)),
    }
    if not on_connect:
        empty = emptied(lake, spark)
        figures |= {"empty_ms": float(np.median(empty)), "ratio": float(np.median(durations) / np.median(empty))}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
