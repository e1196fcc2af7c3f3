"""`kraftlake removal-check`: its lines, its file, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

from kraftlake.cli.faults import UNHEALTHY
from tests.cli.running import DIRECTORY, fault, run

AT = ("removal-check", DIRECTORY, "--broker", 3, "--at", 4592)


def test_it_says_what_lies_on_it_and_writes_proved_moves_for_kafkas_tool(tmp_path: Path) -> None:
    said = run(*AT, "-o", tmp_path / "moves.json", code=UNHEALTHY).stdout
    assert "holds     164 replicas, 64 of them leaders, 3 of internal topics" in said
    assert "moves     157: 49 to broker 1, 47 to broker 2 and 61 to broker 4; proved by the controller's rules" in said
    moves = json.loads((tmp_path / "moves.json").read_text())
    form = json.loads(run(*AT, "--json", code=UNHEALTHY).stdout)
    assert [one["replicas"] for one in moves["partitions"]] == [one["replicas"] for one in form["moves"]]
    assert form["proved"] is True


def test_moves_that_are_not_proved_are_not_written(tmp_path: Path) -> None:
    assert "No moves empty broker 3" in fault("removal-check", DIRECTORY, "--broker", 3, "-o", tmp_path / "moves.json")
    assert not (tmp_path / "moves.json").exists()
