"""`kraftlake log --topic`: the records that are of some topics."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.running import DIRECTORY, SAMPLES, run


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


def test_patterns_types_and_words_go_together() -> None:
    removed = run("log", DIRECTORY, "--topic", "t-2*", "--type", "remove_topic").stdout
    assert "- t-21-w0f" in removed
    assert all(" - t-2" in line for line in removed.splitlines())
    checkpoint = SAMPLES / "kafka-4.4" / "log" / "__cluster_metadata-0" / "00000000000000004593-0000000002.checkpoint"
    assert "+ elr-a" in run("log", checkpoint, "--topic", "elr-?").stdout


def test_a_topic_that_never_was_is_doubted() -> None:
    assert "no topic matches nope" in run("log", DIRECTORY, "--topic", "nope").stderr
    assert run("log", DIRECTORY, "--topic", "elr-a", "--from", 5000).stderr == ""
