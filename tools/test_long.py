"""Runs the tests at full size, room by room, and keeps what each room did, with its seed, in docs/test-long.md.

Rooms that failed come first, then the ones that ran longest ago: after a run that was stopped, the next one goes on.
Rooms are the folders of `tests`, and `tests` itself; words name the ones to run.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self
from xml.etree import ElementTree

import attrs

from tests.room_seconds import room_of
from tests.seed import seed_of_run

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("docs", "test-long.md")
KAFKA = "\n## With Kafka 4.4's own classes\n"
"""The heading of the last part of the page, which the tests of `delta` write."""
TESTS_FAILED = 1
"""pytest's exit code where all tests have run, and some failed."""


@attrs.frozen
class Room:
    """What the tests of a room did when they ran last."""

    name: str
    passed: int
    skipped: int
    failed: int
    minutes: int
    seed: str
    commit: str

    @classmethod
    def of_row(cls, row: str) -> Self:
        """The room of a row of the page."""
        name, *numbers, seed, commit = (cell.strip() for cell in row.strip("|").split("|"))
        return cls(name, *(int(number.replace(",", "")) for number in numbers), seed, commit)

    def row(self) -> str:
        """The row of the page."""
        cells = [f"{cell:,}" if isinstance(cell, int) else cell for cell in attrs.astuple(self)]
        return f"| {' | '.join(cells)} |\n"


def main(names: Sequence[str], words: Sequence[str] = ("-n", "3", "--dist", "loadgroup"), root: Path = ROOT) -> int:
    """Run rooms, all where none is named, with options of pytest.

    The exit code is that of the first run of pytest that failed.
    """
    folders = {room_of(path.relative_to(root).as_posix()) for path in root.glob("tests/**/test_*.py")}
    if unknown := set(names) - folders:
        raise SystemExit(f"tests/ has no room {', '.join(sorted(unknown))}: it has {', '.join(sorted(folders))}.")
    page = root / PAGE
    seed = seed_of_run()
    found = 0
    for name in names or in_order(folders, rooms_of(page)):
        print(f"\n{name}: `KRAFTLAKE_SEED={seed} make test-long ROOMS={name}` repeats it", flush=True)
        room, code = run(name, seed, words, root)
        if code not in (0, TESTS_FAILED):
            print(f"{name} did not come to its end; `make test-long` goes on with it", flush=True)
            return code
        kept = [other for other in rooms_of(page) if other.name in folders - {name}]
        page.write_text(text_of([*kept, room], folders, kafka_part(page, root)), "utf-8")
        found = found or code
    return found


def in_order(folders: set[str], ran: Sequence[Room]) -> list[str]:
    """The rooms that never ran, the ones that failed, and the others, from the one that ran longest ago."""
    ran = [room for room in ran if room.name in folders]
    new = sorted(folders - {room.name for room in ran})
    return new + [room.name for room in sorted(ran, key=lambda room: not room.failed)]


def run(name: str, seed: str, words: Sequence[str], root: Path) -> tuple[Room, int]:
    """Run a room, and return what it did, with pytest's exit code."""
    report = root / "build" / "test-long.xml"
    report.parent.mkdir(exist_ok=True)
    for file in (report, _tally(root)):
        file.unlink(missing_ok=True)
    places = sorted(root.glob("tests/test_*.py")) if name == "tests" else [root / "tests" / name]
    command = [
        *(sys.executable, "-m", "pytest", *words, "--durations=10", f"--junitxml={report}"),
        *(f"--randomly-seed={seed}", f"--hypothesis-seed={seed}", *map(str, places)),
    ]
    own = {"KRAFTLAKE_SEED": seed, "KRAFTLAKE_TALLY": str(_tally(root))}
    began = time.monotonic()
    tests = subprocess.Popen(command, cwd=root, env=os.environ | own)
    heeded = signal.signal(signal.SIGINT, signal.SIG_IGN)  # pytest gets it too, and says what failed until then
    code = tests.wait()
    signal.signal(signal.SIGINT, heeded)
    minutes = round((time.monotonic() - began) / 60)
    counts = dict.fromkeys(("tests", "skipped", "failures", "errors"), 0)
    if report.exists():
        (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
        counts = {key: int(suite.get(key, 0)) for key in counts}
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    return Room(name, passed, counts["skipped"], failed, minutes, seed, _commit(root)), code


def rooms_of(page: Path) -> list[Room]:
    """The rooms of a page, in the order in which they ran."""
    text = page.read_text("utf-8") if page.exists() else ""
    return [Room.of_row(row) for row in re.findall(r"^\| \w+ (?:\| [\d,]+ ){5}\| \S+ \|$", text, re.MULTILINE)]


def text_of(rooms: Sequence[Room], folders: set[str], kafka: str) -> str:
    """The text of a page, which names the rooms that have not run yet."""
    missing = sorted(folders - {room.name for room in rooms})
    lacks = f"Not run yet: {', '.join(missing)}.\n" if missing else ""
    passed, failed, minutes = (sum(getattr(room, name) for room in rooms) for name in ("passed", "failed", "minutes"))
    return (
        "# The last run of the tests at full size\n\n"
        f"{passed:,} tests passed and {failed:,} failed in {minutes} minutes on {os.cpu_count()} cores. The rooms "
        "stand in the order in which\nthey ran; `KRAFTLAKE_SEED=… make test-long ROOMS=…` runs one again.\n"
        f"{lacks}\n"
        "| room | passed | skipped | failed | minutes | seed | commit |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
        f"{''.join(room.row() for room in rooms)}{kafka}"
    )


def kafka_part(page: Path, root: Path) -> str:
    """What was compared with Kafka's own classes: now, or when it was compared last."""
    tally = _tally(root)
    if not tally.exists():
        _, heading, table = page.read_text("utf-8").partition(KAFKA) if page.exists() else ("", "", "")
        return heading + table
    counts = json.loads(tally.read_text("utf-8"))
    records = counts["records"]
    rows = "".join(f"| {name} | {number:,} |\n" for name, number in sorted(records.items()))
    return (
        f"{KAFKA}\n"
        f"Of commit {_commit(root)}: "
        f"{counts['histories']:,} random logs of {sum(records.values()):,} records: {counts['images']:,} images, their "
        f"records as `image.write` makes them and their controller metrics, and {counts['local_changes']:,} local "
        f"changes of one broker over a range are the same on both sides.\n\n"
        f"| record | how many |\n| --- | ---: |\n{rows}"
    )


def _tally(root: Path) -> Path:
    return root / "build" / "test-long.json"


def _commit(root: Path) -> str:
    """The commit that is checked out, and whether files differ from it, of which the page itself is none."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    changed = ["git", "diff", "--quiet", "HEAD", "--", ":!" + PAGE.as_posix()]
    return commit + "-dirty" * (commit != "unknown" and subprocess.run(changed, cwd=root, check=False).returncode == 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
