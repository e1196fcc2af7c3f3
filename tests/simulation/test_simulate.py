"""`make simulate`: hours that are kept, a next run that goes on with the missing ones, and the states that they add."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.at_least_one import at_least_one
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


@pytest.mark.usefixtures("clean")
def test_hours_of_an_earlier_tree_are_taken_over_if_its_histories_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "same.py"
    program.write_text(
        "import json, sys\nfor seed in sys.argv[4:]: print(json.dumps({'seed': int(seed), 'trace': int(seed) * 7}))"
    )
    earlier = tmp_path / "earlier.jsonl"
    lines: list[dict[str, Any]] = [{"seed": seed, "trace": seed * 7} for seed in range(1, 61)]
    earlier.write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, {"seed": 61, "failure": "it fell"}]))
    taken = simulate.adopted(earlier, 1.0, 3, (sys.executable, str(program)))
    own = [line for line in taken if "tree" not in line]
    assert len(own) == 2, "one in fifty is simulated again, and so is of this tree"
    assert taken == [line if line in own else {"tree": "earlier", **line} for line in lines]
    assert "0 of 2 hours that were simulated again make another history" in capsys.readouterr().err
    assert simulate.adopted(tmp_path / "none.jsonl", 1.0, 3) == []

    words = ["simulate", "60", "--minutes", "0", "--folder", str(tmp_path), "--adopt", str(earlier)]
    monkeypatch.setattr("sys.argv", words)
    monkeypatch.setattr(simulate, "adopted", lambda *_: [dict(line, records=0) for line in taken])
    assert simulate.main() == 0
    printed = capsys.readouterr().out
    assert "60 of 60 hours are done, 0 failed" in printed
    assert "58 are of earlier trees; one in 50 was simulated again, to compare the histories" in printed
    assert simulate.read(tmp_path / "tree.jsonl").keys() == set(range(1, 61))

    kept = tmp_path / "tree.jsonl"
    kept.write_text('{"seed": 7, "failure": "it falls here"}\n')
    assert simulate.main() == 1
    assert "60 of 60 hours are done, 1 failed" in capsys.readouterr().out


def test_hours_that_ended_where_nothing_is_promised_are_counted(tmp_path: Path) -> None:
    hours = [{"seed": seed, "records": 0, "faults": {}, "leader_moves": 0} for seed in (1, 2)]
    lines = simulate.summary(
        [hours[0] | {"ended_early": "a record is lost"}, hours[1] | {"ended_early": ""}], 2, tmp_path
    )
    assert "1 ended early, where Kafka promises nothing any more" in lines.splitlines()


@pytest.mark.parametrize("content", ['{"seed": 1}\n', '{"trace": 1}\n', '["seed", {}]}\n'])
def test_a_file_without_hours_is_refused_in_a_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text(content)
    with pytest.raises(SystemExit, match=r"other.jsonl has lines that are no simulated hours: name the .jsonl of"):
        simulate.adopted(tmp_path / "other.jsonl", 1.0, 1)


@pytest.mark.usefixtures("clean")
def test_a_file_that_is_not_there_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulate", "1", "--folder", str(tmp_path), "--adopt", str(tmp_path / "none")])
    with pytest.raises(SystemExit, match="2"):
        simulate.main()
    assert f"--adopt: there is no file {tmp_path / 'none'}" in capsys.readouterr().err


def test_hours_of_a_tree_with_few_other_histories_count_and_with_many_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier, program = tmp_path / "earlier.jsonl", tmp_path / "program.py"
    earlier.write_text("".join(f'{{"seed": {seed}, "trace": 7}}\n' for seed in range(1, 601)))
    words = [sys.executable, str(program)]

    def taken_over(others: Sequence[int]) -> list[dict[str, Any]]:
        program.write_text(
            "import json, sys\nfor seed in map(int, sys.argv[4:]):\n"
            f"    print(json.dumps({{'seed': seed, 'trace': 8 if seed in {others} else 7}}))"
        )
        return simulate.adopted(earlier, 1.0, 2, words)

    own = [hour["seed"] for hour in taken_over([]) if "tree" not in hour]
    assert len(own) == 12
    taken = taken_over(own[:1])
    assert f"1 of 12 hours that were simulated again make another history, the first of seed {own[0]}" in (
        capsys.readouterr().err
    )
    assert [hour["seed"] for hour in taken if hour["trace"] == 8] == own[:1]
    with pytest.raises(SystemExit, match=r"^2 of 12 hours .* another history than in .*earlier.jsonl: none of its"):
        taken_over(own[:2])


def hours_of(program: Path, lines: str, seeds: Sequence[int], seconds: float = 60) -> list[dict[str, Any]]:
    """The hours that come of a process with a program of its own."""
    program.write_text(f"import sys, time\n{lines}")
    hours: list[dict[str, Any]] = []

    def take(hour: dict[str, Any]) -> bool:
        hours.append(hour)
        return True

    simulate.simulate(seeds, 1.0, take, (sys.executable, str(program)), seconds)
    return hours


def test_hours_of_a_process_that_crashes_or_fails_are_failures(tmp_path: Path) -> None:
    lines = (
        "if '1' in sys.argv[4:]:\n"
        """    print('{"seed": 1, "states": [5]}\\n{"seed": 2, "failure": "no leader"}')\n"""
        "    sys.exit('killed')\n"
        """print('{"seed": 4}')\n"""
    )
    hours = hours_of(tmp_path / "crashing.py", lines, [1, 2, 3, 4])
    assert [hour["seed"] for hour in hours] == [1, 2, 3, 4]
    assert [hour.get("failure", "") for hour in hours] == ["", "no leader", "the process: exit code 1: killed\n", ""]


@pytest.mark.parametrize(
    ("lines", "failures"),
    [
        ("time.sleep(60)", {1: "exit code -9", 2: "exit code -9"}),
        ("""print('{"seed": 2}')""", {1: "the hour of seed 2 was not due"}),
        ("""[print(f'{{"seed": {seed}}}') for seed in sys.argv[4:]]; sys.exit('torn')""", {2: "exit code 1: torn"}),
        ("""[print(f'{{"seed": {seed}}}') for seed in (*sys.argv[4:], 3)]""", {2: "the hour of seed 3 was not due"}),
        ("pass", {1: "exit code 0", 2: "exit code 0"}),
    ],
    ids=["hangs", "simulates another one", "fails at its end", "goes on", "ends early"],
)
def test_a_process_that_does_something_else_fails_the_hour_that_was_due(
    lines: str, failures: dict[int, str], tmp_path: Path
) -> None:
    hours = hours_of(tmp_path / "other.py", lines, [1, 2], seconds=0.2 if "sleep" in lines else 60)
    found = {hour["seed"]: hour["failure"] for hour in hours if "failure" in hour}
    assert found.keys() == failures.keys()
    for seed, words in at_least_one(failures.items()):
        assert words in found[seed]


@pytest.mark.parametrize("words", [["10", "--processes", "0"], ["0"], ["ten"]], ids=" ".join)
def test_numbers_below_one_are_refused_in_a_sentence(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.simulate", *words], cwd=simulate.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"{words[-1]!r} is no whole number from 1 on" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_tenth_shows_what_it_adds() -> None:
    happened = {"faults": {"crash": 20}, "leader_moves": 5, "cpu_seconds": 1.5}
    hours = [{"seed": seed, "states": [min(seed, 5), 0], "records": 990 + seed, **happened} for seed in range(1, 21)]
    said = simulate.summary(hours, 100, Path("kept")).splitlines()
    counted = "11 of them had enough happen to count"
    assert said[:3] == ["20 of 100 hours are done, 0 failed (kept)", counted, "1.5 CPU seconds an hour"]
    assert [line.rpartition(": ")[2].split()[0] for line in said[3:]] == ["3", "2", "1", *["0"] * 7]


def test_a_change_of_a_room_that_no_history_loads_keeps_the_hours() -> None:
    program = "import sys; from simulator.__main__ import main; code = main(); print(*sys.modules); sys.exit(code)"
    done = subprocess.run(
        [sys.executable, "-c", program, "--json", "--dense", "--hours", "0.1", "2"],
        cwd=simulate.ROOT, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "0"},
    )  # fmt: skip
    rooms = {name.split(".")[1] for name in done.stdout.splitlines()[1].split() if name.startswith("kraftlake.")}
    assert "server" in rooms
    assert not rooms & set(simulate.UNUSED_ROOMS)
    assert all((simulate.ROOT / "kraftlake" / room).is_dir() for room in simulate.UNUSED_ROOMS)
