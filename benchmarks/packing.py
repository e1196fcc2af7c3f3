"""From how many partitions on packed topics pay: CPU time and memory of an image as objects, and packed.

    python -m benchmarks.packing [--partitions N …] [--runs N]

Each form is made in a process of its own by deltas of 1,000 partitions, as a log makes it. CPU seconds are those of
packing, with the import of numpy, and of one count over all partitions (cluster and brokers) and one list of a broker's
partitions; memory is what the process holds more than before the first delta, after packing.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FORMS = ("objects", "packed")
STEP = 1_000
BROKERS = 30


def measure(form: str, partitions: int) -> dict[str, float]:
    """The figures of one form, in this process."""
    from kraftlake.delta import MetadataDelta
    from kraftlake.image import MetadataImage, MetadataProvenance, count_cluster, count_partitions_of_brokers
    from kraftlake.image.broker_partitions import hosted_partitions
    from kraftlake.image.topics import topics_image
    from kraftlake.records.metadata_records import PartitionRecord, TopicRecord
    from kraftlake.records.uuid import Uuid
    from kraftlake.runtime.process_setup import prevent_numpy_threads, return_freed_memory

    topics_image.PACK_FROM = partitions + 1  # type: ignore[misc]
    prevent_numpy_threads()
    before = resident()
    image = MetadataImage.EMPTY
    for step in range(partitions // STEP):
        delta = MetadataDelta(image)
        for topic in range(step * 100, step * 100 + 100):
            id_ = Uuid(topic.to_bytes(16, "big"))
            delta.replay(TopicRecord(name=f"topic-{topic}", topic_id=id_))
            for number in range(10):
                replicas = tuple((topic * 7 + number + place * 11) % BROKERS for place in range(3))
                delta.replay(
                    PartitionRecord(
                        partition_id=number, topic_id=id_, replicas=replicas, isr=replicas, leader=replicas[0],
                        leader_epoch=0, partition_epoch=0, directories=(Uuid(16),) * 3,
                    )
                )  # fmt: skip
        image = delta.apply(MetadataProvenance.EMPTY)
        del delta
    begun = time.process_time()
    if form == "packed":
        topics_image.PACK_FROM = 0  # type: ignore[misc]
        topics = topics_image.TopicsImage.with_rows(image.topics.rows())
        image = MetadataImage(topics=topics)
    packed = time.process_time()
    gc.collect()
    return_freed_memory()
    held = resident() - before
    began = time.process_time()
    count_cluster(image)
    count_partitions_of_brokers(image)
    assert sum(1 for _ in hosted_partitions(image.topics, 3))
    return {"pack_s": packed - begun, "queries_s": time.process_time() - began, "held_mib": held / (1 << 20)}


def resident() -> int:
    """The bytes of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def best(form: str, partitions: int, runs: int) -> dict[str, float]:
    """The least of each figure, of fresh processes."""
    command = [sys.executable, "-m", "benchmarks.packing", "--one", form, "--partitions", str(partitions)]
    found: list[dict[str, Any]] = [json.loads(subprocess.check_output(command)) for _ in range(runs)]
    return {figure: min(one[figure] for one in found) for figure in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description="From how many partitions on packed topics pay.")
    parser.add_argument("--partitions", type=int, nargs="+", default=[5_000, 10_000, 20_000, 40_000, 80_000])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--one", choices=FORMS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(measure(given.one, given.partitions[0])))
        return
    print(f"{'partitions':>10} {'form':8} {'packing':>10} {'queries':>10} {'memory':>10}")
    for partitions in given.partitions:
        for form in FORMS:
            one = best(form, partitions, given.runs)
            print(
                f"{partitions:10,} {form:8} {one['pack_s'] * 1e3:7.0f} ms {one['queries_s'] * 1e3:7.1f} ms "
                f"{one['held_mib']:6.1f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
