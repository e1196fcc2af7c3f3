"""`kraftlake verify --spec`: the judgement as text and JSON, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path

from kraftlake.kafka_files.file_names import segment_name
from kraftlake.kafka_files.writer import write_segment
from kraftlake.replay.spec.properties import PROPERTIES
from tests.cli.running import run
from tests.replay.sample_logs import directory_of
from tests.replay.spec.test_judge import PLANTS

SAMPLE = str(directory_of("kafka-4.4"))


def broken(folder: Path) -> str:
    """A log in which an unclean election says nothing of it."""
    directory = folder / "__cluster_metadata-0"
    directory.mkdir()
    write_segment(directory / segment_name(0), PLANTS["leader_change_is_clean"]().log)
    return str(directory)


def test_a_sound_log_holds_and_json_says_on_how_much_each_property_was_judged() -> None:
    form = json.loads(run("verify", SAMPLE, "--spec", "--json").stdout)
    spec = form["spec"]
    assert form["sound"]
    assert spec["holds"]
    assert (spec["fromOffset"], spec["toOffset"], spec["stopped"], spec["violations"]) == (0, 5736, None, [])
    assert [one["name"] for one in spec["properties"]] == [*PROPERTIES]
    assert all(one["judged"] and not one["violations"] for one in spec["properties"])


def test_without_the_option_nothing_is_judged() -> None:
    assert "spec" not in json.loads(run("verify", SAMPLE, "--json").stdout)


def test_a_violation_is_named_and_the_exit_code_is_1(tmp_path: Path) -> None:
    log = broken(tmp_path)
    run("verify", log)
    answer = run("verify", log, "--spec", code=1)
    assert "PARTITION_CHANGE_RECORD, leader_change_is_clean: orders-0: a new leader comes from the ISR" in answer.stdout
    (violation,) = json.loads(run("verify", log, "--spec", "--json", code=1).stdout)["spec"]["violations"]
    assert violation["property"] == "leader_change_is_clean"
    assert violation["thing"] == "orders-0"
    assert violation["offset"] == violation["effectiveOffset"]
    assert violation["knownBug"] is None
