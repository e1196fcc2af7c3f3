"""`kraftlake undo`: the plan as text, JSON, commands and a file; the rehearsal; bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kraftlake
from kraftlake.diagnosis.undo.plan_file import read_plan
from kraftlake.runtime.errors import UsageError
from tests.cli.made_logs import hostile_log
from tests.cli.running import DIRECTORY, SAMPLES, fault, run, run_json


def test_a_plan_is_shown_step_by_step_with_its_record() -> None:
    shown = run("undo", DIRECTORY, "--at", 4639, "--to", 4000, "--topic", "t-10-k3m", width=160).stdout
    assert shown == (
        "cluster VXUoBgBGTaWWfCM4Toybuw  from offset 4639, 2026-11-21 07:49:38.492Z, back to 4000, "
        "2026-11-21 07:49:31.356Z\n"
        "   1  partial      create topic  topic/t-10-k3m  partitions – → 2, replicationFactor – → 1, "
        "replicas – → [3] [1]\n"
        "                   it comes back under a new id and without its records\n"
        "                   undone at offset 4233, 2026-11-21 07:49:33.940Z, by REMOVE_TOPIC\n"
        "   2  safe         alter configs  config/TOPIC/t-10-k3m  cleanup.policy – → delete\n"
        "                   undone at offset 4233, 2026-11-21 07:49:33.940Z, by REMOVE_TOPIC\n"
        "2 steps: 1 safe, 1 partial; nothing is changed\n"
    )
    assert "nothing to undo" in run("undo", DIRECTORY, "--to", 5736).stdout


def test_the_file_of_a_plan_is_what_json_prints_and_what_python_makes(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    printed = json.loads(run("undo", DIRECTORY, "--to", 4000, "--plan", file, "--json").stdout)
    assert json.loads(file.read_text()) == printed
    assert read_plan(file).to_json() == kraftlake.open(DIRECTORY).plan_undo(4000).to_json()
    assert printed["now"]["offset"] == 5736
    assert {step["class"] for step in printed["steps"]} == {"safe", "access", "partial", "destructive"}


def test_commands_are_a_script() -> None:
    lines = run("undo", DIRECTORY, "--to", 4000, "--kind", "acl", "--as", "commands").stdout.splitlines()
    assert lines[0] == "#!/bin/sh"
    steps = [line for line in lines if line.startswith("kafka ")]
    assert all(line.startswith("kafka kafka-acls.sh --add --") for line in steps)
    assert len(steps) == len(run_json("undo", DIRECTORY, "--to", 4000, "--kind", "acl")["steps"])


def test_what_if_takes_the_plan_in_memory() -> None:
    words = ("undo", DIRECTORY, "--at", 4639, "--to", 4000, "--kind", "acl,config,topic", "--assignments", "--what-if")
    printed = run(*words).stdout
    assert "── ACLs  " in printed
    assert "equal: the state that comes out" in printed
    form = run_json(*words)
    assert {one["answer"]["error"] for one in form["answers"]} == {"NONE"}
    assert form["left"]["equal"]
    image, past = form["image"], run_json("image", DIRECTORY, "--at-offset", 4000)
    assert image["configs"] == past["configs"]
    assert image["topics"].keys() == past["topics"].keys()
    refused = run("undo", DIRECTORY, "--to", 4639, "--topic", "t-24-cfd", "--what-if", code=1).stdout
    assert "Every broker is fenced" in refused


def test_hostile_names_do_not_steer_a_terminal(tmp_path: Path) -> None:
    log = hostile_log(tmp_path)
    for words in ((), ("--as", "commands"), ("--json",), ("--output", "csv"), ("--what-if",)):
        for to in (0, 2):
            printed = run("undo", log, "--to", to, *words, code=1 if words == ("--what-if",) else 0).stdout
            assert "\x1b" not in printed or words == ("--as", "commands")


def test_bad_words_are_refused(tmp_path: Path) -> None:
    assert "a plan goes back" in fault("undo", DIRECTORY, "--at", 400, "--to", 500)
    assert "did you mean acl?" in fault("undo", DIRECTORY, "--to", 400, "--kind", "acls", code=2)
    assert "There is no topic nowhere" in fault("undo", DIRECTORY, "--to", 400, "--topic", "nowhere")
    assert "no regular file" in fault("undo", DIRECTORY, "--to", 400, "--plan", tmp_path, code=2)
    assert "does not exist" in fault("undo", DIRECTORY, "--to", 400, "--plan", tmp_path / "no" / "plan.json")


def test_python_has_the_same_questions(tmp_path: Path) -> None:
    source = kraftlake.open(DIRECTORY)
    assert source.drift(source).is_empty()
    file = tmp_path / "f.yaml"
    file.write_text(run("recreate", DIRECTORY).stdout)
    assert source.drift(file).is_empty()
    found = source.drift(source, 4000, 4639, ignore=["topic/*", "feature/*"], also=["placement"])
    assert {one.change.part for one in found.changes} >= {"acls"}
    for wrong in (lambda: source.drift(source, also=["x"]), lambda: source.drift(file, other_at=3)):
        with pytest.raises(UsageError):
            wrong()
    with pytest.raises(UsageError, match="no kind of what can be undone"):
        source.plan_undo(4000, kinds=["acls"])


def test_an_application_needs_a_cluster_and_its_switches(tmp_path: Path) -> None:
    assert "--apply needs --on HOST:PORT" in fault("undo", DIRECTORY, "--to", 4000, "--apply", code=2)
    assert "--apply needs" in fault("undo", DIRECTORY, "--to", 400, "--apply", "--on", "h:1", "--what-if", code=2)
    assert "leave --apply" in fault("undo", DIRECTORY, "--to", 4, "--apply", "--on", "h:1", "--as", "commands", code=2)
    assert "Give --to" in fault("undo", DIRECTORY, code=2)
    journal = tmp_path / "journal"
    words = ("undo", DIRECTORY, "--to", 4000, "--apply", "--on", "127.0.0.1:9", "--journal", journal)
    assert "25 access steps, whose names are to be typed" in fault(*words, "--access", code=2)
    assert not journal.exists()
    assert "refuses connections" in fault(*words)
    assert "refuses connections" in fault(*words, "--access", "--yes")
    assert not journal.exists()


def test_a_plan_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    printed = run("undo", DIRECTORY, "--to", 4000, "--kind", "acl", "--plan", file).stdout
    assert run("undo", DIRECTORY, "--plan", file).stdout == printed
    assert "can't be read" in fault("undo", DIRECTORY, "--plan", tmp_path / "none.json")


def test_a_plan_names_who_made_the_changes_that_it_undoes() -> None:
    log = SAMPLES / "authorized"
    by = ("--log-tz", "UTC", "--authorizer-log", log / "node-1" / "kafka-authorizer.log.gz")
    words = ("undo", log / "log" / "__cluster_metadata-0", "--to", 100, *by)
    lines = run(*words).stdout.splitlines()
    assert [line.strip() for line in lines if line.strip().startswith("by ")] == [
        "by User:CN=Carol\\, Smith \\= ops from 127.0.0.1, DeleteTopics",
        "by User:bob from 127.0.0.1, AlterUserScramCredentials",
        "by User:CN=Carol\\, Smith \\= ops from 127.0.0.1, CreatePartitions",
    ]
    steps = json.loads(run(*words, "--json").stdout)["steps"]
    proofs = [step["changes"][0]["undoneBy"] for step in steps]
    assert [proof["who"]["request"] for proof in proofs] == [
        "DeleteTopics", "AlterUserScramCredentials", "CreatePartitions",
    ]  # fmt: skip
    assert "leave --as, --apply and --what-if out" in fault(*words, "--what-if", code=2)
