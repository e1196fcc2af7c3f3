"""`kraftlake drift` and `recreate`: forms, exit codes, sides that are files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.made_logs import HOSTILE, hostile_log
from tests.cli.running import DIRECTORY, TORN, fault, run, run_json


def test_a_cluster_is_equal_to_itself_and_says_so() -> None:
    printed = run("drift", DIRECTORY, DIRECTORY).stdout
    assert "no difference" in printed
    form = run_json("drift", DIRECTORY, DIRECTORY)
    assert (form["equal"], form["notCompared"]) == (True, [])
    assert form["source"] == form["other"]
    assert form["source"]["offset"] == 5736


def test_a_difference_is_exit_code_3_and_named() -> None:
    words = ("drift", DIRECTORY, DIRECTORY, "--at", 3000, "--other-at", 4639)
    printed = run(*words, code=3).stdout
    form = json.loads(run(*words, "--json", code=3).stdout)
    assert not form["equal"]
    added = form["acls"]["added"]
    assert added
    assert all(set(one) >= {"principal", "operation"} for one in added.values())
    assert f"ACLs  {len(added)} added" in printed


def test_two_unlike_clusters_differ_in_both_directions() -> None:
    one, two = (
        json.loads(run("drift", *sides, "--json", "--internal", code=3).stdout)
        for sides in ((DIRECTORY, TORN), (TORN, DIRECTORY))
    )
    assert one["topics"]["added"] == two["topics"]["removed"]
    assert one["topics"]["removed"] == two["topics"]["added"]


def test_patterns_make_two_states_equal() -> None:
    patterns = ("topic/*", "acl/*", "quota/*", "scram/*", "feature/*")
    ignored = [word for pattern in patterns for word in ("--ignore", pattern)]
    left = run("drift", DIRECTORY, DIRECTORY, "--at", 260, "--other-at", 4639, *ignored, code=3).stdout
    assert "topics" not in left
    run("drift", DIRECTORY, DIRECTORY, "--at", 260, "--other-at", 4639, *ignored, "--ignore", "config/*")


@pytest.mark.parametrize("way", ["yaml", "json"])
def test_what_recreate_prints_is_equal_to_the_source(tmp_path: Path, way: str) -> None:
    file = tmp_path / "declared.yaml"
    file.write_text(run("recreate", DIRECTORY, "--as", way, "--assignments", "--show-secrets").stdout)
    form = run_json("drift", DIRECTORY, file, "--also", "placement")
    assert (form["equal"], form["notCompared"]) == (True, [])
    assert form["other"]["path"] == str(file)
    file.write_text(run("recreate", DIRECTORY, "--as", way).stdout)
    form = run_json("drift", file, DIRECTORY)
    assert form["equal"]
    assert {one.rpartition("/")[2] for one in form["notCompared"]} == {"keys"}


def test_one_topic_is_recreated_with_its_configs_and_acls_alone() -> None:
    form = yaml.safe_load(run("recreate", DIRECTORY, "--at", 4639, "--topic", "elr-a").stdout)
    assert form["topics"] == {"elr-a": {"partitions": 3, "replicationFactor": 3}}
    assert form["configs"] == {"TOPIC": {"elr-a": {"min.insync.replicas": "1"}}}
    assert "scram" not in form


def test_strimzi_says_what_it_cannot_express(tmp_path: Path) -> None:
    result = run("recreate", DIRECTORY, "--as", "strimzi")
    assert "Strimzi's resources can't express" in result.stderr
    documents = list(yaml.safe_load_all(result.stdout))
    assert {one["kind"] for one in documents} == {"KafkaTopic", "KafkaUser"}
    assert {one["metadata"]["labels"]["strimzi.io/cluster"] for one in documents} == {"kafka"}


def test_hostile_names_neither_steer_a_terminal_nor_get_lost(tmp_path: Path) -> None:
    log = hostile_log(tmp_path)
    printed = run("recreate", log, "--show-secrets").stdout
    assert "\x1b" not in printed
    assert HOSTILE in yaml.safe_load(printed)["topics"]
    file = tmp_path / "f.yaml"
    file.write_text(printed)
    assert run_json("drift", log, file)["equal"]
    shown = run("drift", log, DIRECTORY, code=3).stdout
    assert "\x1b" not in shown


def test_bad_words_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_text("a: b\n")
    assert "declares nothing that is known" in fault("drift", DIRECTORY, file)
    assert "which has one state" in fault("drift", DIRECTORY, file, "--other-at", 5, code=2)
    assert "did you mean placement?" in fault("drift", DIRECTORY, DIRECTORY, "--also", "placment", code=2)
    assert "does not exist" in fault("drift", DIRECTORY, tmp_path / "g.yaml")
