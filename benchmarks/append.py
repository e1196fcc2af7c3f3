"""What a commit to the log costs, and how that compares with delta-rs and Spark on the same table.

    python -m benchmarks.append [--versions 10 1000 …] [--records 1 1000] [--rounds N] [--peer-rounds N]
                                [--spark-rounds N] [--folder FOLDER] [--json]

One lake is grown through the table versions, by commits of one record, with its upkeep (compaction, checkpoints,
clean-up) as the policy says. At each version every case gets a copy of its own (hard links: no file of a table is ever
changed): ours with and without fsync; `write_deltalake` given the table's path, and given a handle that is kept open,
both after a checkpoint and with those that it makes itself; and an append of a data frame by a Spark session that is
running already. No peer calls fsync. All cases of a version are measured in turn, one commit each, round by round: what
else the machine does meets them all alike, and the ratios hold. Growing takes about 1 ms a version.

ext4 passes over files that were deleted in the last minutes when it makes new ones: after a benchmark or test that
deleted thousands nearby, making a file takes up to a millisecond. `--folder` says where the lakes lie.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from benchmarks.folders import made_folder
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.storage.disk import Durability, disk_for
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.rows import to_rows
from kraftlake.records.serde import ApiMessageAndVersion

SIZES = (1, 1_000)
DURABILITIES: tuple[Durability, ...] = ("fsync", "os")
PEER = "write_deltalake"
PEER_HANDLE = "write_deltalake, its handle kept"
SPARK = "Spark append"
PEERS = {"times_faster": PEER, "times_faster_than_handle": PEER_HANDLE, "times_faster_than_spark": SPARK}
TIME = 1_700_000_000_000
UPKEEP_EVERY = 1_000

Key = tuple[int, str, int]
"""Table version, kind of case, records a commit."""


def batch_at(offset: int, records: int) -> RecordBatch:
    return RecordBatch.of(offset, 1, TIME + 500 * offset, [ApiMessageAndVersion(NoOpRecord(), 0)] * records)


class GrowingLake:
    """A lake of one record a commit, kept in order while it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = MetadataLog.create(path, role="controlled", durability="os")
        self._epoch = self._log.claim(1)
        self._upkeep = Upkeep(path, disk=disk_for(path, "os"))

    def grow(self, version: int) -> dict[str, float]:
        """Reach a table version; seconds of its commits and of the upkeep meanwhile."""
        commits = upkeep = 0.0
        while self._log.version < version:
            begin = time.perf_counter()
            self._log.append([batch_at(self._log.end_offset, 1)], epoch=self._epoch)
            commits += time.perf_counter() - begin
            if self._log.version % UPKEEP_EVERY == 0 and self._log.version < version:
                begin = time.perf_counter()
                self._upkeep.run()
                upkeep += time.perf_counter() - begin
                self._log.refresh()
        begin = time.perf_counter()
        self._upkeep.run(force_checkpoint=True)
        last = time.perf_counter() - begin
        self._log.refresh()
        return {"commits_s": commits, "upkeep_s": upkeep, "last_upkeep_s": last}


def our_commit(log: MetadataLog, records: int) -> Callable[[], None]:
    def run() -> None:
        log.append([batch_at(log.end_offset, records)], epoch=1)

    return run


def delta_rs_commit(table: Path | DeltaTable, records: int) -> Callable[[], None]:
    def run() -> None:
        write_deltalake(table, to_rows([batch_at(0, records)]), mode="append")

    return run


def spark_commit(table: Path, records: int) -> Callable[[], None]:
    from kraftlake.spark_jobs.session import spark_session

    spark = spark_session("benchmarks.append")

    def run() -> None:
        rows = spark.createDataFrame(to_rows([batch_at(0, records)]))  # type: ignore[arg-type]
        rows.coalesce(1).write.format("delta").mode("append").save(str(table))

    return run


def linked_copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, copy_function=os.link)
    return target


def cases_at(
    folder: Path, grown: Path, version: int, options: argparse.Namespace
) -> Iterator[tuple[Key, Callable[[], None]]]:
    """What is measured at a version; each has a copy of the lake of its own."""
    for records in options.records:
        for durability in DURABILITIES:
            lake = linked_copy(grown, folder / f"{durability}-{version}-{records}")
            yield (version, durability, records), our_commit(MetadataLog.open(lake, durability=durability), records)
        for number, peer in enumerate((PEER, PEER_HANDLE) if options.peer_rounds else ()):
            table = linked_copy(grown / "log", folder / f"peer-{number}-{version}-{records}" / "log")
            yield (version, peer, records), delta_rs_commit(table if peer == PEER else DeltaTable(table), records)
        if options.spark_rounds:
            table = linked_copy(grown / "log", folder / f"spark-{version}-{records}" / "log")
            yield (version, SPARK, records), spark_commit(table, records)


def measure(folder: Path, options: argparse.Namespace) -> dict[Key, list[float]]:
    """Seconds of each commit, by case: version by version for the growth, and all versions in turn within a round."""
    lake = GrowingLake(folder / "grown")
    cases: dict[Key, Callable[[], None]] = {}
    for version in sorted(options.versions):
        grown = lake.grow(version)
        say({"grown_to": version, **{name: round(seconds, 2) for name, seconds in grown.items()}})
        cases |= dict(cases_at(folder, lake.path, version, options))
    seconds: dict[Key, list[float]] = {key: [] for key in cases}
    for run in cases.values():
        run()
    for number in range(options.rounds):
        for key, run in cases.items():
            kind = key[1]
            rounds = options.spark_rounds if kind == SPARK else options.peer_rounds
            if kind not in DURABILITIES and number >= rounds:
                continue
            begin = time.perf_counter()
            run()
            seconds[key].append(time.perf_counter() - begin)
    return seconds


def say(what: object) -> None:
    print(json.dumps(what), file=sys.stderr, flush=True)


def p99(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100 - 1 if len(values) >= 100 else -1]


def report(seconds: dict[Key, list[float]]) -> dict[str, dict[str, float]]:
    """Milliseconds of each case, how many times faster ours is than each peer (medians), and how ours grew."""
    p50 = {key: statistics.median(values) * 1_000 for key, values in seconds.items()}
    first = min(version for version, _, _ in p50)
    rows = {}
    for (version, kind, records), value in p50.items():
        taken = seconds[version, kind, records]
        row = {"p50_ms": value, "least_ms": min(taken) * 1_000, "p99_ms": p99(taken) * 1_000}
        if kind in DURABILITIES:
            row |= {
                name: p50[version, peer, records] / value
                for name, peer in PEERS.items()
                if (version, peer, records) in p50
            }
            row["growth"] = value / p50[first, kind, records]
            row["growth_of_least"] = min(taken) / min(seconds[first, kind, records])
        rows[f"version {version:>7}  {records:>5} records  {kind}"] = row
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.append", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--versions", type=int, nargs="+", default=[10, 1_000], help="table versions to measure at")
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="records a commit")
    parser.add_argument("--rounds", type=int, default=200, help="commits of each case of ours")
    parser.add_argument("--peer-rounds", type=int, default=30, help="commits of each case of delta-rs; 0: without it")
    parser.add_argument("--spark-rounds", type=int, default=5, help="commits of each case of Spark; 0: without Spark")
    parser.add_argument("--folder", type=made_folder, help="where the lakes lie; by default among the temporary files")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kraftlake-append-", dir=options.folder) as folder:
        rows = report(measure(Path(folder), options))
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    titles = ("p50 ms", "least ms", "p99 ms", "× path", "× handle", "× Spark", "growth", "of least")
    print(f"{'a commit':62} " + " ".join(f"{title:>9}" for title in titles))
    names = ("p50_ms", "least_ms", "p99_ms", *PEERS, "growth", "growth_of_least")
    for name, row in rows.items():
        print(
            f"{name:62} " + " ".join(f"{row[column]:9.2f}" if column in row else " " * 9 for column in names).rstrip()
        )


if __name__ == "__main__":
    main()
