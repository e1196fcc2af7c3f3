"""Images of any size from a lake's columns: `python -m benchmarks.image.lake_columns PARTITIONS…`.

The lake is made without its records (a snapshot of one stands for them): what is measured is the way from the columns
to an image that answers, in a process of its own, and that process's largest memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts

ROOT = Path(__file__).resolve().parents[2]
PER_TOPIC, REPLICAS, BROKERS = 10, 3, 300
RUNS = 3


def make_from_log(log: Path, lake: Path) -> None:
    """A lake with the snapshot that `log` holds, and its columns."""
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.records.batch import read_batches
    from kraftlake.replay.imports.cached_images import save_to_cache

    batches = list(read_batches(log.read_bytes(), file=log.name))
    end = batches[-1].last_offset + 1
    made = MetadataLog.create(lake, start_offset=end)
    made.add_snapshot(
        SnapshotFacts(end_offset=end, epoch=1, last_contained_log_timestamp=batches[-1].timestamp), batches
    )
    save_to_cache(lake, made.snapshots()[0])


def make_of_size(partitions: int, lake: Path) -> None:
    """A lake whose columns hold `partitions` partitions."""
    import attrs
    import numpy as np

    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.image.provenance import MetadataProvenance
    from kraftlake.image.topics.packed_topics import PackedTopics
    from kraftlake.image.topics.topic_table import TopicTable
    from kraftlake.image.topics.topics_image import TopicsImage
    from kraftlake.kernels.partition_row import COLUMNS, DIRECTORIES, ISR, LEADER, SHAPE
    from kraftlake.metadata_log.log import MetadataLog
    from kraftlake.records.batch import RecordBatch
    from kraftlake.records.metadata_records import FeatureLevelRecord
    from kraftlake.records.serde import ApiMessageAndVersion, encode_value
    from kraftlake.records.uuid import Uuid
    from kraftlake.replay.loader.image_cache import save_columns
    from kraftlake.replay.loader.image_columns import image_to_arrow
    from kraftlake.replay.loader.quorum_state import QuorumState

    topics = partitions // PER_TOPIC
    rows = np.zeros((partitions, COLUMNS), np.int32)
    numbers = np.arange(partitions, dtype=np.int32)
    for place in range(REPLICAS):
        rows[:, place] = rows[:, ISR + place] = (numbers + place) % BROKERS
        rows[:, DIRECTORIES + place] = 1 + (numbers + place) % BROKERS
    rows[:, LEADER], rows[:, SHAPE] = rows[:, 0], REPLICAS | REPLICAS << 8
    ids = np.random.default_rng(7).integers(0, 256, (topics, 16), np.uint8)
    starts = np.arange(topics + 1, dtype=np.int32) * PER_TOPIC
    packed = PackedTopics(
        table=TopicTable([f"topic{n}" for n in range(topics)], ids, starts, {}),
        rows=rows,
        heap=np.empty(0, np.int32),
        directories=(Uuid.ZERO, *(Uuid(n.to_bytes(16, "big")) for n in range(1000, 1000 + BROKERS))),
    )
    level = ApiMessageAndVersion(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
    image = attrs.evolve(
        MetadataImage.EMPTY,
        topics=TopicsImage.with_rows(packed),
        provenance=MetadataProvenance(offset=99, epoch=1, timestamp=1),
    )
    log = MetadataLog.create(lake, start_offset=100)
    batch = RecordBatch.of(0, 1, 1, [level])
    log.add_snapshot(SnapshotFacts(end_offset=100, epoch=1, last_contained_log_timestamp=1), [batch])
    (snapshot,) = log.snapshots()
    columns = image_to_arrow(image, [encode_value(level.message, 0)])
    save_columns(lake, snapshot, columns, QuorumState())


def load(lake: Path) -> dict[str, Any]:
    """Opens the lake, looks a partition up by name and by id, and counts the cluster."""
    import kraftlake
    from kraftlake.image.cluster_counts import count_cluster

    start = time.perf_counter_ns()
    image = kraftlake.open(lake).image()
    loaded = time.perf_counter_ns()
    topic = image.topics.get_topic("topic7")
    assert topic is not None
    assert image.topics.get_partition(topic.id, 3) == topic.partitions[3]
    looked_up = time.perf_counter_ns()
    counts = count_cluster(image)
    counted = time.perf_counter_ns()
    return {
        "topics": counts.global_topic_count,
        "partitions": counts.global_partition_count,
        "load_ns": loaded - start,
        "indexes_ns": looked_up - loaded,
        "count_ns": counted - looked_up,
        "largest_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def in_a_process(*arguments: object) -> Any:
    """What one of the functions above prints, called as a program of its own."""
    command = [sys.executable, "-m", "benchmarks.image.lake_columns", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout) if done.stdout.strip() else None


def main() -> None:
    match sys.argv[1:]:
        case ["make", size, lake] if size.isdecimal():
            make_of_size(int(size), Path(lake))
        case ["make", log, lake]:
            make_from_log(Path(log), Path(lake))
        case ["load", lake]:
            print(json.dumps(load(Path(lake))))
        case sizes:
            print(
                f"{'partitions from columns':>24} {'load':>9} {'ns each':>8} {'+ indexes':>10} {'+ counts':>9} memory"
            )
            for size in map(int, sizes or ["1000000", "10000000"]):
                _show(size)


def _show(size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lake = Path(folder) / "lake"
        in_a_process("make", size, lake)
        runs = [in_a_process("load", lake) for _ in range(RUNS)]
    assert {run["partitions"] for run in runs} == {size}
    load_ns, indexes, counts, memory = (
        min(run[key] for run in runs) for key in ("load_ns", "indexes_ns", "count_ns", "largest_bytes")
    )
    each = f"{load_ns / 1e6:6.0f} ms {load_ns / size:8.1f} {indexes / 1e6:7.0f} ms {counts / 1e6:6.0f} ms"
    print(f"{size:24,} {each} {memory / 2**30:.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
