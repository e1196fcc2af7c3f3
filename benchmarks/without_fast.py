"""The slowdown without the extra `fast`: the same commands on the same log with compiled code and without.

    python -m benchmarks.without_fast [--records N] [--runs N]

Each command is a whole process. Without the extra means that numba and llvmlite can't be found, as in a bare install.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.processes import time_in_turn
from kraftlake.generate import Plan, generate_lake

WITHOUT = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None; from kraftlake.cli import main; main()"
WITH = "from kraftlake.cli import main; main()"


def commands(lake: Path) -> dict[str, list[str]]:
    """Words of the command line by what they are called in the table."""
    return {
        "image LAKE --json": ["image", str(lake), "--json"],
        "metrics LAKE --json": ["metrics", str(lake), "--json"],
        "verify LAKE": ["verify", str(lake)],
        "events LAKE --kind broker_fenced": ["events", str(lake), "--kind", "broker_fenced", "--json"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lake, out = Path(scratch) / "lake", Path(scratch) / "out"
        generate_lake(lake, Plan(topics=2_000, records=options.records))
        print(f"a lake of {options.records:,} records and 24,000 partitions; median seconds of CPU of a whole process")
        print(f"{'command':36}{'with':>8}{'without':>9}{'ratio':>8}")
        for name, words in commands(lake).items():
            timings = time_in_turn(
                {how: [sys.executable, "-c", code, *words] for how, code in (("with", WITH), ("without", WITHOUT))},
                options.runs,
                out,
            )
            fast, slow = timings["with"].median_cpu, timings["without"].median_cpu
            print(f"{name:36}{fast:8.2f}{slow:9.2f}{slow / fast:8.1f}")


if __name__ == "__main__":
    main()
