"""Runs every test at full size and keeps the result, with the seed that repeats it, in docs/test-long.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.seed import seed_of_run

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Runs, shows and records; the exit code is that of the tests."""
    seed = seed_of_run()
    command = ["-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", "--durations=40", f"--randomly-seed={seed}"]
    command += [f"--hypothesis-seed={seed}"]
    print(f"seed {seed}: KRAFTLAKE_SEED={seed} make test-long repeats this run", flush=True)
    start = time.monotonic()
    tally = Path(tempfile.gettempdir()) / f"kraftlake-tally-{os.getpid()}.json"
    environment = os.environ | {"KRAFTLAKE_TALLY": str(tally)}
    tests = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    last = percent = ""
    for line in tests.stdout or ():
        last = line.strip("= \n") or last
        test = re.match(r"\[gw\d+\] \[ *(\d+)%\] (\w+) (.*)", line)
        if test is None:
            if not line.startswith("tests/"):  # a test that starts
                print(line, end="", flush=True)
        elif test[2] in ("FAILED", "ERROR") or test[1] != percent:
            # A run of hours that is stopped has named what failed until then.
            percent = test[1]
            print(f"{percent:>3} % after {(time.monotonic() - start) / 60:.0f} min  {test[2]} {test[3]}", flush=True)
    tests.wait()
    minutes = (time.monotonic() - start) / 60
    outcome = re.sub(r" in [\d.]+s.*", "", last)
    (ROOT / "docs" / "test-long.md").write_text(
        "# The last run of the tests at full size\n\n"
        f"`make test-long`: {outcome}, in {minutes:.0f} minutes on {os.cpu_count()} cores, seed {seed}\n"
        f"(`KRAFTLAKE_SEED={seed} make test-long` repeats it).\n"
        f"{_agreement(tally)}",
        encoding="utf-8",
    )
    return tests.returncode


def _agreement(tally: Path) -> str:
    """What was compared with Kafka's own classes, where all of it agreed."""
    try:
        counts = json.loads(tally.read_text("utf-8"))
    except OSError:
        return "\nThe comparison with Kafka's own classes did not finish.\n"
    tally.unlink()
    records = counts["records"]
    rows = "".join(f"| {name} | {number:,} |\n" for name, number in sorted(records.items()))
    return (
        "\n## With Kafka 4.4's own classes\n\n"
        f"{counts['histories']:,} random logs of {sum(records.values()):,} records: {counts['images']:,} images, their "
        f"records as `image.write` makes them and their controller metrics, and {counts['local_changes']:,} local "
        f"changes of one broker over a range are the same on both sides.\n\n"
        f"| record | how many |\n| --- | ---: |\n{rows}"
    )


if __name__ == "__main__":
    sys.exit(main())
