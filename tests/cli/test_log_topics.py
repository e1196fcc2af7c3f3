"""`kraftlake log --topic`: the records that are of some topics."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.cli.running import DIRECTORY, SAMPLES, fault, run


def records(*words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("log", DIRECTORY, *words, "--json").stdout.splitlines()]


def test_a_topics_records_are_itself_its_partitions_its_configs_and_what_concerns_all_topics() -> None:
    of_it = records("--topic", "elr-a")
    assert [record["type"] for record in of_it[:4]] == [
        "TOPIC_RECORD", "CONFIG_RECORD", "CLEAR_ELR_RECORD", "PARTITION_RECORD",
    ]  # fmt: skip
    id_ = of_it[0]["data"]["topicId"]
    expected = [
        record["offset"]
        for record in records()
        if record["data"].get("topicId") == id_
        or (record["type"] == "CONFIG_RECORD" and record["data"]["resourceName"] == "elr-a")
        or (record["type"] == "CLEAR_ELR_RECORD" and record["data"]["topicName"] in ("", "elr-a"))
    ]
    assert [record["offset"] for record in of_it] == expected


def test_names_from_before_the_first_record_are_known() -> None:
    assert records("--topic", "elr-a", "--from", 3000) == [
        record for record in records("--topic", "elr-a") if record["offset"] >= 3000
    ]


def test_the_names_of_a_snapshot_are_known_also_where_its_own_has_no_offset(tmp_path: Path) -> None:
    named = DIRECTORY / "00000000000000003038-0000000002.checkpoint"
    renamed = tmp_path / "renamed.checkpoint"
    shutil.copy(named, renamed)
    for words in (["--partition", "elr-a-0"], ["--topic", "elr-a", "--from", 200], ["--broker", 1]):
        shown = run("log", named, *words).stdout
        assert shown
        assert run("log", renamed, *words).stdout == shown
    assert "elr-a had elr-a-0 to elr-a-2" in fault("log", renamed, "--partition", "elr-a-9")


def test_patterns_types_and_words_go_together() -> None:
    removed = run("log", DIRECTORY, "--topic", "t-2*", "--type", "remove_topic").stdout
    assert "- t-21-w0f" in removed
    assert all(" - t-2" in line for line in removed.splitlines())
    checkpoint = SAMPLES / "kafka-4.4" / "log" / "__cluster_metadata-0" / "00000000000000004593-0000000002.checkpoint"
    assert "+ elr-a" in run("log", checkpoint, "--topic", "elr-?").stdout


def test_a_topic_that_never_was_is_doubted() -> None:
    assert "no topic matches nope" in fault("log", DIRECTORY, "--topic", "nope")
    assert run("log", DIRECTORY, "--topic", "elr-a", "--from", 5000).stderr == ""


TWICE = {"nANz2uTcTHue83qLIJ1OVA": (2027, 3038), "hurOkaHyTSargjoz9lrYFQ": (3044, None)}
"""The ids that topics called big-a had one after the other, from which record to which."""


def test_of_a_name_that_was_used_again_an_id_is_one_topic() -> None:
    of_name = records("--topic", "big-a")
    of_all = [record for record in of_name if record["data"].get("topicName") == ""]
    of_ids = {id_: [one for one in records("--topic-id", id_) if one not in of_all] for id_ in TWICE}
    for id_, (first, last) in TWICE.items():
        begun, ended = of_ids[id_][0], of_ids[id_][-1]
        assert (begun["offset"], begun["data"]["name"], begun["data"]["topicId"]) == (first, "big-a", id_)
        assert (ended["offset"] if ended["type"] == "REMOVE_TOPIC_RECORD" else None) == last
    offsets = [record["offset"] for id_ in TWICE for record in of_ids[id_]]
    assert sorted(offsets) == [record["offset"] for record in of_name if record not in of_all]


def test_configs_of_an_id_are_those_that_its_name_was_given_while_it_was_there() -> None:
    (created,) = records("--topic", "elr-a", "--type", "topic")
    assert records("--topic-id", created["data"]["topicId"]) == records("--topic", "elr-a")


def test_an_id_that_no_topic_had_is_doubted() -> None:
    assert "no topic has the id AAAAAAAAAAAAAAAAAAAAAQ" in fault("log", DIRECTORY, "--topic-id", "A" * 21 + "Q")
    assert "'big-a' is not a topic's id" in run("log", DIRECTORY, "--topic-id", "big-a", code=2).stderr
