"""Runs every test at full size, in one part or more, and keeps the result, with its seed, in docs/test-long.md.

A run that was stopped, or in which tests failed, goes on: the next part runs what has not passed yet, with the same
seed. `KRAFTLAKE_SEED=7 make test-long` begins anew.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.passed_earlier import PASSED_EARLIER
from tests.seed import seed_of_run
from tools.test_quick import without_group

ROOT = Path(__file__).resolve().parents[1]
ENDED = (0, 1)
"""pytest's exit codes where all tests have run."""
_WORKERS = ("-n", "3", "--dist", "loadgroup")
_TEST = re.compile(r"\[gw\d+\] \[ *(\d+)%\] ([A-Z]+) (.*?) ?$")


@attrs.define
class Run:
    """What the parts of a run have found. `file` has a line for each part and each test, written as they come."""

    file: Path
    seed: str
    outcomes: dict[str, str] = attrs.field(factory=dict)
    minutes: dict[str, float] = attrs.field(factory=dict)
    """Of the parts, by their commit."""

    @classmethod
    def read(cls, folder: Path) -> Run | None:
        """The run that is kept in a folder, with what has passed; None where there is none, or all has passed.

        Ends the program where the file is damaged.
        """
        file = folder / "run.jsonl"
        if not file.exists():
            return None
        try:
            lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
            run = cls(file, lines[0]["seed"])
            for line in lines:
                run.take(line)
        except (ValueError, KeyError, IndexError):
            raise SystemExit(f"{file} is damaged: remove it, and the next run begins anew.") from None
        run.outcomes = dict.fromkeys(run.passed(), "PASSED")  # the others run again, where they still exist
        return None if any(line.get("complete") for line in lines) else run

    def take(self, line: dict[str, Any]) -> None:
        """Add the outcome and the minutes in a line."""
        if "test" in line:
            self.outcomes[line["test"]] = line["outcome"]
        if "minutes" in line:
            self.minutes[line["commit"]] = line["minutes"]

    def keep(self, **line: Any) -> None:
        """Add a line, and write it down."""
        self.take(line)
        with self.file.open("a", encoding="utf-8") as file:
            print(json.dumps(line), file=file)

    def passed(self) -> list[str]:
        """The tests that have passed."""
        return [name for name, outcome in self.outcomes.items() if outcome == "PASSED"]


def main(words: Sequence[str] = _WORKERS, root: Path = ROOT) -> int:
    """Runs, shows and records; the exit code is that of the tests."""
    folder = root / "build" / "test-long"
    tally = folder / "tally.json"
    run = None if os.environ.get("KRAFTLAKE_SEED") else Run.read(folder)
    if run is None:
        folder.mkdir(parents=True, exist_ok=True)
        run = Run(folder / "run.jsonl", seed_of_run())
        for file in (run.file, tally):
            file.unlink(missing_ok=True)
        run.keep(seed=run.seed)
    os.environ["KRAFTLAKE_SEED"] = seed = run.seed
    print(f"seed {seed}: KRAFTLAKE_SEED={seed} make test-long repeats this run", flush=True)
    if passed := run.passed():
        print(f"passed in an earlier part, and not run again: {len(passed):,}", flush=True)
    (folder / "passed.json").write_text(json.dumps(passed), "utf-8")
    command = ["-m", "pytest", "-v", *words, "--durations=40", f"--randomly-seed={seed}", f"--hypothesis-seed={seed}"]
    own = {"KRAFTLAKE_TALLY": str(tally), PASSED_EARLIER: str(folder / "passed.json")}
    tests = subprocess.Popen(
        [sys.executable, *command], cwd=root, env=os.environ | own, stdout=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # pytest gets it too, and says what failed until then
    _follow(tests.stdout or (), run, _commit(root))
    code = tests.wait()
    if code not in ENDED:
        print(f"passed until now: {len(run.passed()):,}; `make test-long` goes on with the others", flush=True)
        return code
    (root / "docs" / "test-long.md").write_text(_page(run, tally), "utf-8")
    if code == 0:
        run.keep(complete=True)
    return code


def _follow(lines: Iterable[str], run: Run, commit: str) -> None:
    """Write down each outcome; show the failures, a line for each percent, and pytest's other lines."""
    start, percent, before = time.monotonic(), "", run.minutes.get(commit, 0.0)
    for line in lines:
        test = _TEST.match(line.rstrip("\n"))
        if test is None:
            if not re.match(r"tests/\S+::", line):  # a test that starts
                print(line, end="", flush=True)
            continue
        minutes = (time.monotonic() - start) / 60
        name = without_group(test[3])
        run.keep(test=name, outcome=test[2], commit=commit, minutes=round(before + minutes, 2))
        if test[2] in ("FAILED", "ERROR") or test[1] != percent:
            percent = test[1]
            print(f"{percent:>3} % after {minutes:.0f} min  {test[2]} {name}", flush=True)


def _commit(root: Path) -> str:
    """The commit that is checked out, and whether files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def _page(run: Run, tally: Path) -> str:
    """The page docs/test-long.md, from all parts."""
    counts = Counter(run.outcomes.values())
    words = ", ".join(f"{counts[outcome]:,} {outcome.lower()}" for outcome in sorted(counts))
    parts = "".join(f"- {commit}, {minutes:.0f} minutes\n" for commit, minutes in run.minutes.items())
    return (
        "# The last run of the tests at full size\n\n"
        f"`make test-long`: {words}, in {sum(run.minutes.values()):.0f} minutes on {os.cpu_count()} cores, seed "
        f"{run.seed}\n(`KRAFTLAKE_SEED={run.seed} make test-long` repeats it), on the commits\n\n{parts}"
        f"{_agreement(tally)}"
    )


def _agreement(tally: Path) -> str:
    """What was compared with Kafka's own classes, where all of it agreed."""
    try:
        counts = json.loads(tally.read_text("utf-8"))
    except OSError:
        return "\nThe comparison with Kafka's own classes did not finish.\n"
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
