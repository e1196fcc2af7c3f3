"""How long opening a lake takes, at several ages, beside delta-rs on the same table: `python -m benchmarks.opening`.

The table is appended to one record a commit, with our upkeep's checkpoints made as they come due but nothing compacted:
the worst case. Each round opens the table with both readers in turn, in one process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable

from kraftlake.metadata_log import MetadataLog, Upkeep, UpkeepPolicy
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion

NO_OP = [ApiMessageAndVersion(NoOpRecord(), 0)]
UNCOMPACTED = UpkeepPolicy(compact_from=10**9)


def timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def measure(lake: Path, rounds: int) -> dict[str, float]:
    """Medians in ms of opening, in turn."""
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(timed(lambda: MetadataLog.open(lake)))
        theirs.append(timed(lambda: DeltaTable(lake / "log")))
    return {"kraftlake_ms": statistics.median(ours), "delta_rs_ms": statistics.median(theirs)}


def grow(log: MetadataLog, upkeep: Upkeep, versions: int) -> None:
    while log.version < versions:
        log.append([RecordBatch.of(log.end_offset, 1, 1_700_000_000_000 + 500 * log.end_offset, NO_OP)])
        if log.version % 100 == 0:
            upkeep.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, nargs="+", default=[10, 1_000, 20_000])
    parser.add_argument("--rounds", type=int, default=31)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lake = Path(scratch) / "lake"
        log = MetadataLog.create(lake, durability="os")
        upkeep = Upkeep(lake, UNCOMPACTED)
        for versions in arguments.versions:
            grow(log, upkeep, versions)
            print(json.dumps({"versions": versions, "files": "one a version", **measure(lake, arguments.rounds)}))
        rows = {"before_ms": timed(lambda: MetadataLog.open(lake).rows())}
        Upkeep(lake).run(force_checkpoint=True)
        rows["after_ms"] = timed(lambda: MetadataLog.open(lake).rows())
        print(json.dumps({"versions": log.version, "files": "compacted", **measure(lake, arguments.rounds)}))
        print(json.dumps({"read all rows, one file a version and compacted": rows}))


if __name__ == "__main__":
    sys.exit(main())
