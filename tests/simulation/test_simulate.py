"""`make simulate`: hours that are kept, a next run that goes on with the missing ones, and the states that they add."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools import simulate


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree is taken as committed: a test of a change runs before its commit."""
    monkeypatch.setattr(simulate, "tree", lambda: "tree")


def run(folder: Path, hours: int, monkeypatch: pytest.MonkeyPatch, minutes: float = 5) -> int:
    words = ["simulate", str(hours), "--folder", str(folder), "--length", "0.3", "--minutes", str(minutes)]
    monkeypatch.setattr("sys.argv", words)
    return simulate.main()


@pytest.mark.usefixtures("clean")
def test_a_next_run_goes_on_with_the_seeds_that_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, 2, monkeypatch, minutes=0) == 3
    assert "0 of 2 hours are done" in capsys.readouterr().out
    assert run(tmp_path, 2, monkeypatch) == 0
    kept = tmp_path / "tree.jsonl"
    first = kept.read_text().splitlines()
    assert [json.loads(line)["seed"] for line in first] == [1, 2]
    assert all(json.loads(line)["states"] for line in first)
    kept.write_text(f"{first[0]}\n{first[1][:50]}")  # a run that was killed
    kept.write_text(kept.read_text() + "\n")
    assert run(tmp_path, 2, monkeypatch) == 0
    assert [simulate.read(kept)[seed]["trace"] for seed in (1, 2)] == [json.loads(line)["trace"] for line in first]
    assert "2 of 2 hours are done, 0 failed" in capsys.readouterr().out


def test_hours_of_a_process_that_crashes_or_fails_are_failures(tmp_path: Path) -> None:
    crashing = tmp_path / "crashing.py"
    crashing.write_text(
        "import sys\n"
        "if '1' in sys.argv[4:]:\n"
        """    print('{"seed": 1, "states": [5]}\\n{"seed": 2, "failure": "no leader"}')\n"""
        "    sys.exit('killed')\n"
        """print('{"seed": 4}')\n"""
    )
    hours: list[dict[str, Any]] = []

    def take(hour: dict[str, Any]) -> bool:
        hours.append(hour)
        return True

    simulate.simulate([1, 2, 3, 4], 1.0, take, (sys.executable, str(crashing)))
    assert [hour["seed"] for hour in hours] == [1, 2, 3, 4]
    assert [hour.get("failure", "") for hour in hours] == ["", "no leader", "the process: exit code 1: killed\n", ""]


def test_each_tenth_shows_what_it_adds() -> None:
    hours = [{"seed": seed, "states": [min(seed, 5), 0], "cpu_seconds": 1.5} for seed in range(1, 21)]
    said = simulate.summary(hours, 100, Path("kept")).splitlines()
    assert said[:2] == ["20 of 100 hours are done, 0 failed (kept)", "1.5 CPU seconds an hour"]
    assert [line.rpartition(": ")[2].split()[0] for line in said[2:]] == ["3", "2", "1", *["0"] * 7]
