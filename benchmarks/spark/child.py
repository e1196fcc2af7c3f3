"""One thing to measure, in a process of its own: `python -m benchmarks.spark.child WHAT LAKE`; prints JSON."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.spark.cpu import tree_cpu, tree_memory


def local_fold(lake: str) -> dict[str, object]:
    """The image at the end of the log, from the log alone."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.replay.loader.fold import image_at
    from kraftlake.replay.reading.open_reader import LakeReader

    log = MetadataLog.open(lake)
    image = image_at(LakeReader(log), log.end_offset - 1, from_snapshot=False).image
    return {"records": log.end_offset, "partitions": image.topics.partition_count}


def local_snapshot(lake: str) -> dict[str, object]:
    """The same, written as a snapshot of a copy's (whose log is the lake's own)."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.replay.imports.kept_snapshot import keep_snapshot
    from kraftlake.replay.loader.fold import image_at
    from kraftlake.replay.reading.open_reader import LakeReader

    log = MetadataLog.open(lake)
    replay = image_at(LakeReader(log), log.end_offset - 1, from_snapshot=False)
    keep_snapshot(log, replay.image, replay.quorum)
    return {"records": log.end_offset, "partitions": replay.image.topics.partition_count}


def spark_fold(lake: str) -> dict[str, object]:
    """The distributed fold to the end of the log, from the log alone: a row for each partition."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.spark_jobs import image_frame, spark_session

    partitions = image_frame(spark_session("benchmark"), lake, from_snapshot=False).count()
    return {"records": MetadataLog.open(lake).end_offset, "partitions": partitions}


def spark_snapshot(lake: str) -> dict[str, object]:
    """`build_snapshot` at the end of the log, from the log alone."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.spark_jobs import build_snapshot, spark_session

    built = build_snapshot(spark_session("benchmark"), lake, from_snapshot=False)
    return {
        "records": MetadataLog.open(lake).end_offset,
        "partitions": built.partitions,
        "shards": built.shards,
        "snapshot_records": built.records,
    }


def typed_read(lake: str) -> dict[str, object]:
    """Every change of a partition in typed columns, decoded on the executors and added up."""
    from kraftlake.spark_jobs import read_records, spark_session

    spark = spark_session("benchmark")
    columns = ["offset", "topic_id", "partition_id", "leader", "isr"]
    started, before = tree_cpu(), time.perf_counter()
    frame = read_records(spark, lake, "PartitionChangeRecord", columns=columns)
    row = frame.selectExpr("count(*)", "sum(leader)", "sum(size(isr))", "max(topic_id)").collect()[0]
    return {"records": row[0], "cpu_of_read": tree_cpu() - started, "wall_of_read": time.perf_counter() - before}


def local_changes(lake: str) -> dict[str, object]:
    """What the last tenth of the log means to each broker, as `local_changes_frame` says."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.spark_jobs import local_changes_frame, spark_session

    end = MetadataLog.open(lake).end_offset
    frame = local_changes_frame(spark_session("benchmark"), lake, end - end // 10, from_snapshot=False)
    return {"records": end, "rows": frame.count()}


def spark_start(_: str) -> dict[str, object]:
    """Nothing but a session."""
    from kraftlake.spark_jobs import spark_session

    spark_session("benchmark")
    return {}


MEASURED: dict[str, Callable[[str], dict[str, object]]] = {
    "local-fold": local_fold,
    "local-snapshot": local_snapshot,
    "spark-fold": spark_fold,
    "spark-snapshot": spark_snapshot,
    "spark-start": spark_start,
    "typed-read": typed_read,
    "local-changes": local_changes,
}


def main() -> None:
    """Run it, and print what it was and what it took: CPU and wall seconds of all its processes, peak GiB."""
    what, lake = sys.argv[1:3]
    peak = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            peak[0] = max(peak[0], tree_memory())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    started = time.perf_counter()
    result = MEASURED[what](str(Path(lake)))
    wall, cpu = time.perf_counter() - started, tree_cpu()
    peak[0] = max(peak[0], tree_memory())
    done.set()
    watcher.join()
    sys.stdout.write(json.dumps(result | {"wall": wall, "cpu": cpu, "peak_gib": peak[0]}) + "\n")


if __name__ == "__main__":
    main()
