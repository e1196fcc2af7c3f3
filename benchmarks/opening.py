"""How long opening a lake takes, at several ages, beside delta-rs on the same table: `python -m benchmarks.opening`.

The table is appended to one record a commit, with our upkeep's checkpoints made as they come due but nothing compacted:
the worst case. Each round opens the table with both readers in turn, in one process. What an open lake takes of memory
is measured in a process of its own each, after opening and after its files were asked for.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.folders import made_folder
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.storage.disk import disk_for
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.serde import ApiMessageAndVersion

NO_OP = [ApiMessageAndVersion(NoOpRecord(), 0)]
UPKEEP_EVERY = 1_000
UNCOMPACTED = UpkeepPolicy(compact_from=10**9)


MEMORY = """
import resource, sys
from pathlib import Path
from kraftlake.metadata_log.log import MetadataLog
import pyarrow.parquet

def private() -> int:
    pages = Path("/proc/self/statm").read_text().split()
    return (int(pages[1]) - int(pages[2])) * resource.getpagesize()

before = private()
log = MetadataLog.open(sys.argv[1])
opened = private()
log.rows(0, 0)
print(opened - before, private() - before)
"""


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


def memory(lake: Path) -> dict[str, float]:
    """MB that an open lake takes in a process of its own: opened, and with the list of its files read."""
    output = subprocess.run(
        [sys.executable, "-c", MEMORY, str(lake)], capture_output=True, text=True, check=True
    ).stdout
    opened, listed = (round(int(word) / 2**20, 1) for word in output.split())
    return {"opened_mb": opened, "files_listed_mb": listed}


def grow(log: MetadataLog, upkeep: Upkeep, versions: int) -> None:
    while log.version < versions:
        log.append([RecordBatch.of(log.end_offset, 1, 1_700_000_000_000 + 500 * log.end_offset, NO_OP)])
        if log.version % UPKEEP_EVERY == 0:
            upkeep.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, nargs="+", default=[10, 1_000, 20_000])
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--folder", type=made_folder, help="where the lake lies; by default among the temporary files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        lake = Path(scratch) / "lake"
        log = MetadataLog.create(lake, durability="os")
        upkeep = Upkeep(lake, UNCOMPACTED, disk=disk_for(lake, "os"))
        for versions in arguments.versions:
            grow(log, upkeep, versions)
            print(
                json.dumps(
                    {"versions": versions, "files": "one a version", **measure(lake, arguments.rounds), **memory(lake)}
                )
            )
        rows = {"before_ms": timed(lambda: MetadataLog.open(lake).rows())}
        Upkeep(lake).run(force_checkpoint=True)
        rows["after_ms"] = timed(lambda: MetadataLog.open(lake).rows())
        print(
            json.dumps(
                {"versions": log.version, "files": "compacted", **measure(lake, arguments.rounds), **memory(lake)}
            )
        )
        print(json.dumps({"read all rows, one file a version and compacted": rows}))


if __name__ == "__main__":
    sys.exit(main())
