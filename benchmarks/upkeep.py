"""A made-up year of a lake, with a policy and without: python -m benchmarks.upkeep [--days N] [--keep DAYS]

Each four hours of the year 4 of 1,000 partitions get another leader and 60 no-op records are written, in 4 commits,
and a snapshot is made. Each day one upkeep runs: with a policy that keeps some days of the log, 24 newest snapshots
and one a day, and without one, which compacts and vacuums alone. Printed is what both lakes hold by the end of each
month. Files leave the disk at once, since nothing else reads the lakes; a real one has those of the last six hours
besides.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from benchmarks.folders import made_folder
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.retention import DAY_MS, Retention
from kraftlake.metadata_log.maintenance.trimming import declare_stream_lag
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.records.uuid import Uuid
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.runtime.clock import ManualClock
from kraftlake.server.lake_upkeep import LakeUpkeep

BEGIN_MS = 1_735_689_600_000
PERIODS, PARTITIONS, NO_OPS, COMMITS = 6, 1_000, 60, 4
TOPIC = Uuid(b"a topic of a day")
EXCLUSIVE = UpkeepPolicy(orphan_age_ms=0, exclusive=True)
MONTH = 30


@attrs.frozen(kw_only=True)
class Size:
    """What a lake holds, and the CPU seconds of its upkeeps so far."""

    megabytes: float
    files: int
    snapshots: int
    cpu: float


class Year:
    """A lake that is written to, hour by hour."""

    def __init__(self, path: Path, retention: Retention | None) -> None:
        self.path = path
        self._log = MetadataLog.create(path, durability="os")
        self._loader, self._chance = MetadataBatchLoader(), random.Random(1)
        self._clock = ManualClock(BEGIN_MS)
        self._cpu = 0.0
        declare_stream_lag(path / "log", self._log.disk, 0)
        self._append([*_beginning()])
        self._work = LakeUpkeep(path, clock=self._clock, policy=EXCLUSIVE)
        if retention is not None:
            self._work.declare(retention)

    def _append(self, records: list[object]) -> None:
        made = [ApiMessageAndVersion(record, 0) for record in records]  # type: ignore[arg-type]
        self._log.refresh()
        batch = RecordBatch.of(self._log.end_offset, 1, self._clock.milliseconds(), made)
        self._log.append([batch])
        self._loader.load_batch(batch)

    def day(self) -> None:
        """A day, then an upkeep."""
        for _ in range(PERIODS):
            moved = [
                r.PartitionChangeRecord(partition_id=number, topic_id=TOPIC, leader=self._chance.randrange(1, 4))
                for number in self._chance.sample(range(PARTITIONS), COMMITS)
            ]
            for one in moved:
                self._clock.advance(DAY_MS / PERIODS / COMMITS)
                self._append([one, *[r.NoOpRecord()] * (NO_OPS // COMMITS)])
            keep_snapshot(self._log, self._loader.take_image())
        declare_stream_lag(self.path / "snapshots", self._log.disk, 0)
        began = time.process_time()
        self._work.run()
        self._cpu += time.process_time() - began

    def size(self) -> Size:
        """The whole folder."""
        files = [path.stat().st_size for path in self.path.rglob("*") if path.is_file()]
        snapshots = len(MetadataLog.open(self.path).snapshots())
        return Size(megabytes=sum(files) / 1e6, files=len(files), snapshots=snapshots, cpu=self._cpu)


def _beginning() -> Iterator[object]:
    yield r.FeatureLevelRecord(name="metadata.version", feature_level=25)
    yield r.TopicRecord(name="orders", topic_id=TOPIC)
    for number in range(PARTITIONS):
        yield r.PartitionRecord(
            partition_id=number, topic_id=TOPIC, replicas=[1, 2, 3], isr=[1, 2, 3], leader=1, leader_epoch=0,
            partition_epoch=0,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=360)
    parser.add_argument("--keep", type=int, default=30, help="days of the log that the policy keeps")
    parser.add_argument("--folder", type=made_folder, help="where the lakes lie; by default among the temporary files")
    options = parser.parse_args()
    policy = Retention(keep_ms=options.keep * DAY_MS, newest_snapshots=24, daily_days=options.keep + 1)
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        lakes = [Year(Path(scratch) / "kept", policy), Year(Path(scratch) / "all", None)]
        print(f"{'day':>4}  {'with a policy: MB':>18} {'files':>7} {'snapshots':>10} {'CPU s':>7}", end="")
        print(f"  {'without: MB':>12} {'files':>7} {'snapshots':>10} {'CPU s':>7}")
        for day in range(1, options.days + 1):
            for lake in lakes:
                lake.day()
            if day % MONTH == 0 or day == options.days:
                kept, everything = (lake.size() for lake in lakes)
                print(
                    f"{day:>4}  {kept.megabytes:>18.1f} {kept.files:>7} {kept.snapshots:>10} {kept.cpu:>7.0f}", end=""
                )
                more = everything
                print(f"  {more.megabytes:>12.1f} {more.files:>7} {more.snapshots:>10} {more.cpu:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
