"""The log table's figures in one table of ratios: `python -m benchmarks.log [--long] [--folder FOLDER]`.

Runs what the other modules measure, one after another, each in a process of its own: appends beside delta-rs and Spark
(`benchmarks.append`), opening and memory (`benchmarks.opening`), the time to a reader in another process
(`benchmarks.tail`), import beside Kafka's dump tool (`benchmarks.bulk_import`), and the size of a record
(`benchmarks.size`).
`--long` goes to 200,000 versions and a million records.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

SHORT = {
    "append": ["--versions", "10", "1000", "--rounds", "100", "--peer-rounds", "20", "--spark-rounds", "3"],
    "opening": ["--versions", "10", "1000"],
    "tail": ["--count", "200"],
    "bulk_import": ["--records", "200000", "--runs", "2"],
    "size": [],
}
LONG = {
    "append": ["--versions", "10", "1000", "20000", "200000", "--spark-rounds", "5"],
    "opening": ["--versions", "10", "1000", "20000", "200000"],
    "tail": ["--count", "1000"],
    "bulk_import": ["--records", "1000000", "--runs", "3"],
    "size": ["--commits", "20000"],
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.log", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--long", action="store_true", help="200,000 versions, a million records: an hour")
    parser.add_argument("--folder", type=Path, help="where the lakes lie; by default among the temporary files")
    options = parser.parse_args()
    folder = [] if options.folder is None else ["--folder", str(options.folder)]
    worst = 0
    for name, arguments in (LONG if options.long else SHORT).items():
        command = [sys.executable, "-m", f"benchmarks.{name}", *arguments, *folder]
        print(f"\n$ python {' '.join(command[1:])}", flush=True)
        worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
