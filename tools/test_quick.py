"""Runs every test at its quick size, and up to three that failed a second time: alone, with the same seeds.

Tests of real nodes measure real time: a machine that stands still for a second can make one of thousands fail. Kafka's
own build runs such tests again, too. A test that passes only alone is named at the end; one that fails for another
reason fails again, since hypothesis repeats the example, and the seeds are the same. `make test-long` repeats nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.seed import seed_of_run

ROOT = Path(__file__).resolve().parents[1]
FAILED = Path(".pytest_cache", "v", "cache", "lastfailed")
"""Where pytest keeps the tests that failed, below the folder of its configuration."""
MOST_REPEATED = 3
"""How many tests are run again; more than these do not fail by chance."""


def main(words: list[str], root: Path = ROOT) -> int:
    """Run the tests with options of pytest, and return the exit code of its last run."""
    pytest = [sys.executable, "-m", "pytest", f"--randomly-seed={seed_of_run()}"]
    first = subprocess.run([*pytest, "--cache-clear", *words], cwd=root, check=False)
    if first.returncode != 1:  # nothing failed, or pytest itself did not come to its end
        return first.returncode
    failed = [without_group(nodeid) for nodeid in json.loads((root / FAILED).read_text("utf-8"))]
    if len(failed) > MOST_REPEATED:
        return first.returncode
    print(f"\n{len(failed)} failed, and run again, alone:", *failed, sep="\n  ", flush=True)
    alone = ["-n", "1", "--dist", "loadgroup"]  # the seed of a test comes of its name, to which its group belongs there
    again = subprocess.run([*pytest, *alone, *failed], cwd=root, check=False)
    if again.returncode == 0:
        print("\nPASSED ONLY ALONE, and so to be mended:", *failed, sep="\n  ", flush=True)
    return again.returncode


def without_group(nodeid: str) -> str:
    """The name of a test without the group that pytest-xdist writes behind it."""
    return nodeid if nodeid.endswith("]") or "@" not in nodeid else nodeid.rpartition("@")[0]


if __name__ == "__main__":
    sys.exit(main(["-n", "3", "--dist", "loadgroup", *sys.argv[1:]]))
