"""Runs every test at full size and keeps the result, with the seed that repeats it, in docs/test-long.md."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Runs, shows and records; the exit code is that of the tests."""
    seed = os.environ.get("KRAFTLAKE_SEED") or str(random.SystemRandom().randrange(2**32))
    command = ["-m", "pytest", "-n", "2", "--dist", "loadgroup", f"--randomly-seed={seed}"]
    command += [f"--hypothesis-seed={seed}"]
    print(f"seed {seed}: KRAFTLAKE_SEED={seed} make test-long repeats this run", flush=True)
    start = time.monotonic()
    tests = subprocess.Popen([sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    last = ""
    for line in tests.stdout or ():
        print(line, end="", flush=True)
        last = line.strip("= \n") or last
    tests.wait()
    minutes = (time.monotonic() - start) / 60
    outcome = re.sub(r" in [\d.]+s.*", "", last)
    (ROOT / "docs" / "test-long.md").write_text(
        "# The last run of the tests at full size\n\n"
        f"`make test-long`: {outcome}, in {minutes:.0f} minutes on {os.cpu_count()} cores, seed {seed}\n"
        f"(`KRAFTLAKE_SEED={seed} make test-long` repeats it).\n",
        encoding="utf-8",
    )
    return tests.returncode


if __name__ == "__main__":
    sys.exit(main())
