"""What a commit to the log costs, and how that compares with delta-rs on the same table.

    python -m benchmarks.append [--versions 10 1000 …] [--rounds N] [--peer-rounds N] [--json]

For each table version a lake is grown to it, by commits of one record, and copied for the peer: `write_deltalake` given
the table's path, and given a handle that is kept open, both after a checkpoint and with those that it makes itself (it
never calls fsync). Then all cases are measured in turn, one commit each, round by
round: what else the machine does meets them all alike, and the ratios hold. At 20,000 versions and more growing takes
its time (0.3 to 1 ms a version).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from kraftlake.metadata_log import MetadataLog
from kraftlake.metadata_log.disk import Durability
from kraftlake.metadata_log.upkeep import Upkeep
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.rows import to_rows
from kraftlake.records.serde import ApiMessageAndVersion

SIZES = (1, 1_000)
DURABILITIES: tuple[Durability, ...] = ("fsync", "os")
PEER = "write_deltalake"
PEER_HANDLE = "write_deltalake, its handle kept"
TIME = 1_700_000_000_000


def batch_at(offset: int, records: int) -> RecordBatch:
    return RecordBatch.of(offset, 1, TIME, [ApiMessageAndVersion(NoOpRecord(), 0)] * records)


def grow(path: Path, version: int) -> None:
    log = MetadataLog.create(path, role="controlled", durability="os")
    epoch = log.claim(1)
    while log.version < version:
        log.append([batch_at(log.end_offset, 1)], epoch=epoch)
    Upkeep(path).run(force_checkpoint=True)


def our_commit(log: MetadataLog, records: int) -> Callable[[], None]:
    def run() -> None:
        log.append([batch_at(log.end_offset, records)], epoch=1)

    return run


def peer_commit(table: Path | DeltaTable, records: int) -> Callable[[], None]:
    def run() -> None:
        write_deltalake(table, to_rows([batch_at(0, records)]), mode="append")

    return run


def cases_at(folder: Path, version: int) -> dict[tuple[int, str, int], Callable[[], None]]:
    """What is measured at a version, by version, kind and number of records; each has a lake of its own."""
    grown = folder / f"grown-{version}"
    grow(grown, version)
    cases: dict[tuple[int, str, int], Callable[[], None]] = {}
    for records in SIZES:
        for durability in DURABILITIES:
            lake = folder / f"{durability}-{version}-{records}"
            shutil.copytree(grown, lake)
            cases[version, durability, records] = our_commit(MetadataLog.open(lake, durability=durability), records)
        for peer in (PEER, PEER_HANDLE):
            table = folder / f"{peer[-4:]}-{version}-{records}" / "log"
            shutil.copytree(grown / "log", table)
            cases[version, peer, records] = peer_commit(table if peer == PEER else DeltaTable(table), records)
    return cases


def measure(versions: list[int], rounds: int, peer_rounds: int) -> dict[tuple[int, str, int], list[float]]:
    """Seconds of each commit, by case."""
    with tempfile.TemporaryDirectory(prefix="kraftlake-append-") as folder:
        cases = {key: run for version in versions for key, run in cases_at(Path(folder), version).items()}
        seconds: dict[tuple[int, str, int], list[float]] = {key: [] for key in cases}
        for run in cases.values():
            run()
        for number in range(rounds):
            for key, run in cases.items():
                if key[1] not in DURABILITIES and number >= peer_rounds:
                    continue
                begin = time.perf_counter()
                run()
                seconds[key].append(time.perf_counter() - begin)
        return seconds


def p99(values: list[float]) -> float:
    return sorted(values)[len(values) * 99 // 100 - 1 if len(values) >= 100 else -1]


def report(seconds: dict[tuple[int, str, int], list[float]]) -> dict[str, dict[str, float]]:
    """Median milliseconds of each case, how many times faster ours is than the peer, and how ours grew."""
    p50 = {key: statistics.median(values) * 1_000 for key, values in seconds.items()}
    first = min(version for version, _, _ in p50)
    rows = {}
    for (version, kind, records), value in p50.items():
        row = {"p50_ms": value, "p99_ms": p99(seconds[version, kind, records]) * 1_000}
        if kind in DURABILITIES:
            row["times_faster"] = p50[version, PEER, records] / value
            row["times_faster_than_handle"] = p50[version, PEER_HANDLE, records] / value
            row["growth"] = value / p50[first, kind, records]
        rows[f"version {version:>7}  {records:>5} records  {kind}"] = row
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.append", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--versions", type=int, nargs="+", default=[10, 1_000], help="table versions to measure at")
    parser.add_argument("--rounds", type=int, default=200, help="commits of each case of ours")
    parser.add_argument("--peer-rounds", type=int, default=30, help="commits of each case of the peer")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = report(measure(options.versions, options.rounds, options.peer_rounds))
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'a commit':62} {'p50 ms':>9} {'p99 ms':>9} {'× path':>9} {'× handle':>9} {'growth':>7}")
    for name, row in rows.items():
        compared = ""
        if "growth" in row:
            compared = f"{row['times_faster']:9.1f} {row['times_faster_than_handle']:9.1f} {row['growth']:7.2f}"
        print(f"{name:62} {row['p50_ms']:9.2f} {row['p99_ms']:9.2f} {compared}")


if __name__ == "__main__":
    main()
