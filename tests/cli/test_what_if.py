"""`kraftlake what-if`: its forms, its steps in the order of the options, and that nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.cli.commands.controlled.change import LAKE_ALONE
from tests.cli.made_logs import HOSTILE, batch_of, directory_of
from tests.cli.running import DIRECTORY, LEGACY, TORN, fault, run, run_json
from tests.diagnosis.trial.clusters import broker, features
from tests.protocol.observer.fake_quorum import running
from tools.commands import commands


def steps(*words: object) -> list[tuple[str, list[Any]]]:
    """The steps of an answer, each with its brokers, racks or partitions."""
    form = run_json("what-if", DIRECTORY, "--at", 4592, *words)
    return [(one["step"], one["brokers"] or one["racks"] or one["partitions"]) for one in form["steps"]]


def test_the_steps_are_in_the_order_of_the_options(tmp_path: Path) -> None:
    moves = tmp_path / "moves.json"
    moves.write_text('{"version":1,"partitions":[{"topic":"big-a","partition":0,"replicas":[2,3]}]}')
    given = ["--restart", 2, "--lose-rack", "rack-0", "--catch-up", "--lose-broker", "3,2", "--reassign", moves,
             "--restart", "1", "--catch-up", "--lose-rack", "rack-1,rack-2"]  # fmt: skip
    assert steps(*given, "--each-broker") == [
        ("restart", [2]),
        ("lose-rack", ["rack-0"]),
        ("catch-up", []),
        ("lose-broker", [3, 2]),
        ("reassign", ["big-a-0"]),
        ("restart", [1]),
        ("catch-up", []),
        ("lose-rack", ["rack-1", "rack-2"]),
    ]


def test_the_json_form_is_that_of_the_python_call() -> None:
    printed = run_json("what-if", DIRECTORY, "--at", 4592, "--lose-broker", 3, "--restart", 3, "--each-rack")
    answer = kraftlake.open(DIRECTORY).what_if("lose-broker 3", "restart 3", at=4592, each_rack=True)
    assert printed == answer.to_json()
    image = run_json("image", DIRECTORY, "--at", 4592)
    led = [one["leader"] for topic in image["topics"].values() for one in topic["partitions"].values()]
    assert printed["leadersBefore"] == {str(id_): led.count(id_) for id_ in sorted({*led} - {-1})}
    assert printed["lost"] == {"brokers": [3], "racks": []}
    assert printed["offline"] == sorted(printed["offline"])


def test_a_person_reads_what_happens_step_by_step() -> None:
    shown = run("what-if", DIRECTORY, "--at", 4592, "--lose-broker", 1, "--lose-rack", "rack-1", width=120).stdout
    for words in (
        "at offset 4592, epoch 2, 2026-11-21 07:49:37.784Z",
        "no live cluster is changed, nothing is written",
        "as it is                       –              3                12           19",
        "1  lose broker 1: lost       3 (+3)       63 (+60)",
        "2  lose rack rack-1: lost  32 (+29)      159 (+96)",
        "1  rack-0  fenced          54    – (-54)",
        "3  rack-2  active          64  148 (+84)",
        "go offline   32  __transaction_state-2, t-1-bkq-0",
        "… 20 more: --json names them",
        "if brokers 1 and 2 start again after a crash: 32 of 32 offline partitions get a leader",
        "✗ 32 partitions go offline",
    ):
        assert words in shown, words


def test_what_is_offline_for_a_while_is_shown() -> None:
    shown = run("what-if", DIRECTORY, "--at", 4592, "--restart", 1, "--catch-up").stdout
    assert "offline meanwhile  3  t-1-bkq-2, t-1-bkq-3, t-27-bs9-2" in shown
    assert shown.endswith("✗ 3 partitions are offline meanwhile\n")
    assert run("what-if", DIRECTORY, "--at", 4592, "--catch-up").stdout.endswith("✓ no partition goes offline\n")


def test_the_risk_tables_have_the_worst_first() -> None:
    shown = run("what-if", DIRECTORY, "--at", 4592, "--each-broker", "--each-rack", width=120).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert [line[0] for line in lines if line and line[0] in "1234"] == ["2", "3", "1", "4"]
    assert "rack-0 (brokers 1 and 4)     81          13            101" in shown
    assert shown.endswith("✗ 7 of 7 losses take partitions offline\n")
    gone = run("what-if", DIRECTORY, "--each-broker", "--each-rack").stdout
    assert "every broker is fenced" in gone
    assert gone.endswith("✓ no single loss takes a partition offline\n")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_tables_fit_the_terminal(width: int) -> None:
    words = ["--at", 4592, "--lose-broker", 1, "--each-broker", "--each-rack"]
    lines = run("what-if", DIRECTORY, *words, width=width).stdout.splitlines()
    assert max(map(len, lines[2:])) <= width


def test_nothing_is_written_and_every_source_gives_the_same_answer(tmp_path: Path) -> None:
    lake, copy = tmp_path / "lake", tmp_path / "copy"
    run("import", DIRECTORY, lake)
    run("fork", DIRECTORY, tmp_path / "fork")
    shutil.copytree(DIRECTORY.parent, copy)
    archive = shutil.make_archive(str(tmp_path / "log"), "gztar", DIRECTORY.parent)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    words = ["--at", 4592, "--lose-rack", "rack-0", "--restart", "1", "--catch-up", "--each-broker"]
    snapshot = DIRECTORY / "00000000000000004593-0000000002.checkpoint"
    sources = (DIRECTORY, snapshot, copy, archive, lake, tmp_path / "fork")
    answers = [run_json("what-if", source, *words) | {"clusterId": None} for source in sources]
    assert answers == [answers[0]] * len(sources)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_live_quorum_is_asked() -> None:
    with running() as quorum:
        assert "no metadata.version" in fault("what-if", quorum, "--catch-up")


def test_what_the_controller_refuses_is_shown_and_the_exit_code_is_1(tmp_path: Path) -> None:
    moves = tmp_path / "moves.json"
    moves.write_text('{"version":1,"partitions":[{"topic":"big-a","partition":0,"replicas":[2,9]}]}')
    result = run("what-if", DIRECTORY, "--at", 4592, "--reassign", moves, code=1)
    assert "refused: big-a-0: The assignment [2, 9] can't be made: broker 9 is not registered." in result.stdout
    printed = json.loads(run("what-if", DIRECTORY, "--at", 4592, "--reassign", moves, "--json", code=1).stdout)
    assert list(printed["steps"][0]["refused"]) == ["big-a-0"]


def test_a_mistake_is_one_sentence(tmp_path: Path) -> None:
    assert "Say what would happen: --lose-broker" in fault("what-if", DIRECTORY, code=2)
    assert "registered brokers: 1, 2, 3 and 4" in fault("what-if", DIRECTORY, "--lose-broker", 9)
    assert "racks: rack-0, rack-1 and rack-2" in fault("what-if", DIRECTORY, "--lose-rack", "a")
    assert "is not a broker's id" in fault("what-if", DIRECTORY, "--restart", "x", code=2)
    assert "can't be read" in fault("what-if", DIRECTORY, "--reassign", tmp_path / "moves.json", code=2)
    assert "below 7 (3.3-IV3)" in fault("what-if", LEGACY, "--each-broker")
    assert "No broker has a rack" in fault("what-if", TORN, "--at", 20, "--each-rack")


def test_hostile_names_can_steer_no_terminal(tmp_path: Path) -> None:
    log = directory_of(tmp_path, [batch_of(offset, one) for offset, one in enumerate([
        *features(), broker(1, rack=HOSTILE, log_dirs=()), broker(2, log_dirs=()),
    ])])  # fmt: skip
    shown = run("what-if", log, "--lose-rack", HOSTILE, "--lose-rack", HOSTILE, "--each-rack").stdout
    sentence = fault("what-if", log, "--lose-rack", "b")
    assert "\x1b" not in shown + sentence
    assert "fenced already" in shown


def test_the_commands_that_change_a_lake_say_that_no_live_cluster_is_changed(tmp_path: Path) -> None:
    changing = [(path, one) for path, one in commands() if one.help and LAKE_ALONE in one.help]
    groups = {path for path, one in commands() if getattr(one, "section", "").startswith("Change a controlled lake")}
    assert groups
    assert {path for path, _ in changing} == {
        path for path, _ in commands() if any(path == group or path.startswith(f"{group} ") for group in groups)
    }
    lake = tmp_path / "lake"
    run("format", lake)
    answered = run("brokers", "register", 1, "--unfence", "--lake", lake).stdout
    assert answered.splitlines()[-1] == f"in the lake {lake} alone: no live cluster is changed"
    assert run_json("brokers", "fence", 1, "--lake", lake)["liveClusterChanged"] is False
    refused = run("brokers", "fence", 2, "--lake", lake, code=1)
    assert "no live cluster" not in refused.stdout
