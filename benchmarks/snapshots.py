"""What it costs to write an image down: `python -m benchmarks.snapshots [--partitions N,N] [--runs N]`.

As a snapshot in a lake and as Kafka's file, in bulk and object by object, in turn, each in a process of its own that
has replayed a generated log before: CPU seconds of the writing alone, and by how much memory grew meanwhile.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.folders import made_folder
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.kafka_files.snapshots.batches import checkpoint_batches
from kraftlake.kafka_files.writer import write_checkpoint
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader

PARTITIONS_OF_A_TOPIC = 50


def lake_in_bulk(log: MetadataLog, image: MetadataImage, _: Path) -> None:
    keep_snapshot(log, image)


def lake_by_objects(log: MetadataLog, image: MetadataImage, _: Path) -> None:
    at = image.provenance
    batches = checkpoint_batches(image.write(), epoch=at.epoch, timestamp=at.timestamp)
    log.add_snapshot(
        SnapshotFacts(end_offset=at.offset + 1, epoch=at.epoch, last_contained_log_timestamp=at.timestamp), batches
    )


def file_in_bulk(_: MetadataLog, image: MetadataImage, file: Path) -> None:
    records = image.write_bulk(image.writer_options())
    write_checkpoint(file, records, epoch=1, timestamp=image.provenance.timestamp)


def file_by_objects(_: MetadataLog, image: MetadataImage, file: Path) -> None:
    write_checkpoint(file, image.write(), epoch=1, timestamp=image.provenance.timestamp)


WAYS: dict[str, Callable[[MetadataLog, MetadataImage, Path], None]] = {
    "lake, in bulk": lake_in_bulk,
    "lake, objects": lake_by_objects,
    "file, in bulk": file_in_bulk,
    "file, objects": file_by_objects,
}


def memory(key: str) -> int:
    """MiB of this process: what it has (VmRSS), or had at most (VmHWM)."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[key].split()[0]) // 1024


def write_once(way: str, lake: Path) -> dict[str, float]:
    """Replay the lake, then write its image once."""
    log = MetadataLog.open(lake)
    image = image_at(LakeReader(log), log.end_offset - 1, from_snapshot=False).image
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    held, started = memory("VmRSS"), time.process_time()
    WAYS[way](log, image, lake / "written.checkpoint")
    return {"cpu": time.process_time() - started, "grown": memory("VmHWM") - held}


def measured(way: str, lake: Path) -> dict[str, float]:
    """One run in a process of its own; nothing of it stays."""
    command = [sys.executable, "-m", "benchmarks.snapshots", "--child", way, "--folder", str(lake)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(lake / "snapshots", ignore_errors=True)
    (lake / "written.checkpoint").unlink(missing_ok=True)
    if done.returncode:
        sys.exit(f"{way} on {lake} failed: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.snapshots", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", default="100000,1000000")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=made_folder, help="where the lakes lie; by default among the temporary files")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(write_once(options.child, options.folder)))
        return
    print(f"{'partitions':>10}  {'written as':14} {'CPU s, least':>12} {'median':>7} {'MiB more':>9}")
    for count in map(int, options.partitions.split(",")):
        with tempfile.TemporaryDirectory(prefix="kraftlake-snapshots-", dir=options.folder) as folder:
            lake = Path(folder) / "lake"
            plan = Plan(brokers=60, topics=count // PARTITIONS_OF_A_TOPIC, partitions=PARTITIONS_OF_A_TOPIC, records=0)
            generate_lake(lake, plan)
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for _ in range(options.runs):
                for way, measurements in runs.items():
                    measurements.append(measured(way, lake))
            for way, measurements in runs.items():
                cpu = sorted(each["cpu"] for each in measurements)
                grown = max(each["grown"] for each in measurements)
                print(f"{count:>10,}  {way:14} {cpu[0]:>12.2f} {cpu[len(cpu) // 2]:>7.2f} {grown:>9.0f}")


if __name__ == "__main__":
    main()
