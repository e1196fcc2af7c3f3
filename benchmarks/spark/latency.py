"""How long an append takes to reach a table: `python -m benchmarks.spark.latency LAKE`; prints JSON.

One change of a partition at a time is appended to a generated lake while the job `replay` streams it; then as many
again while a stream runs over the same log that does nothing but take its rows. LAKE is changed by it.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.spark_jobs import ReplayListener, StreamOptions, run_job, spark_session

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
    reached, durations = [-1], list[int]()
    last = appender.log.end_offset + APPENDS - 1
    job = threading.Thread(
        target=lambda: run_job(
            "replay",
            lake,
            spark=spark,
            options=StreamOptions(trigger=TRIGGER, until_offset=last),
            on_progress=lambda offset, _: reached.append(offset),
            listener=ReplayListener(lambda progress: durations.append(progress.duration_ms)),
        )
    )
    job.start()
    taken = one_by_one(appender, lambda: reached[-1])
    job.join()
    return taken, durations[APPENDS // 6 :]


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


def main() -> None:
    """Measure and print."""
    spark = spark_session("latency benchmark")
    taken, durations = replayed(sys.argv[1], spark)
    empty = emptied(sys.argv[1], spark)
    told = {
        "latency_p50": float(np.percentile(taken, 50)),
        "latency_p99": float(np.percentile(taken, 99)),
        "batch_ms": float(np.median(durations)),
        "empty_ms": float(np.median(empty)),
        "ratio": float(np.median(durations) / np.median(empty)),
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
