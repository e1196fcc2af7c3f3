"""`kraftlake blame` and `kraftlake bisect`: what they print, and how they fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kraftlake
from kraftlake.records import metadata_records as r
from tests.cli.running import DIRECTORY, SAMPLES, fault, run
from tests.replay import made_logs as log


def lines(*words: object) -> list[str]:
    return run(*words).stdout.splitlines()


def test_the_newest_change_is_a_line_of_json_and_all_are_with_all() -> None:
    words = ("blame", DIRECTORY, "broker/3/fenced", "--at-offset", 500)
    (newest,) = map(json.loads, lines(*words, "--json"))
    assert newest == {
        "thing": "broker/3/fenced", "offset": 475, "timestamp": 1795247184032, "epoch": 1,
        "type": "BROKER_REGISTRATION_CHANGE_RECORD", "before": True, "after": False,
    }  # fmt: skip
    all_ = [json.loads(line) for line in lines(*words, "--all", "--json")]
    assert all_[-1] == newest
    assert [one["before"] for one in all_[1:]] == [one["after"] for one in all_[:-1]]
    source = kraftlake.open(DIRECTORY)
    assert [change.to_json() for change in source.blame_all("broker/3/fenced", 500)] == all_
    assert source.blame("broker/3/fenced", "2026-11-21T07:46:24.1Z").to_json() == newest


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ("topic/t-22-3h4/partition/2/isr", "    5584   2  2026-11-21 07:50:28.535Z  PARTITION_CHANGE  in sync 3 → –"),
        ("broker/3/fenced", "BROKER_REGISTRATION_CHANGE  fenced no → yes"),
        ("config/TOPIC/t-3-dj5/cleanup.policy", "CONFIG  value compact,delete → delete"),
        ("topic/elr-a", "TOPIC  created"),
        ("topic/elr-a/partition/0", "PARTITION_CHANGE  leader 4 → none, in sync 4 → –, eligible – → 4"),
        ("feature/metadata.version", "FEATURE_LEVEL  value "),
    ],
)
def test_the_change_is_shown_in_words(thing: str, words: str) -> None:
    head, line = lines("blame", DIRECTORY, thing)
    assert head == thing
    assert words in line


def test_a_snapshot_says_that_it_may_have_been_so_earlier() -> None:
    snapshot = next(DIRECTORY.glob("*4593-*.checkpoint"))
    assert lines("blame", snapshot, "topic/elr-a/partition/0/isr")[1].endswith(
        "snapshot  in sync 2 3 4  so since this snapshot or earlier"
    )


def test_what_is_not_there_is_reported_with_names_that_are_near() -> None:
    assert "did you mean topic/elr-a, " in fault("blame", DIRECTORY, "topic/elr-b")
    assert "CONFIG_RECORD at offset 83 removed it" in fault("blame", DIRECTORY, "config/TOPIC/t-3-dj5/retention.ms")
    assert "did you mean isr?" in fault("blame", DIRECTORY, "topic/elr-a/partition/0/irs", code=2)
    assert "Offset 9999 is past the end" in fault("blame", DIRECTORY, "topic/elr-a", "--at-offset", 9999)
    assert "Offset 9999 is past the end" in fault("bisect", DIRECTORY, "broker(3).fenced", "--from", 9999)
    assert "there is no broker/9/fenced" in fault("bisect", DIRECTORY, "broker(9).fenced")
    assert "did you mean offline_partitions?" in fault("bisect", DIRECTORY, "offline_partition_ > 1", code=2)


def test_the_principals_of_a_delegation_token_are_redacted() -> None:
    token = ("blame", DIRECTORY, "token/toz45Qs3SbK2FawnbOLVmQ", "--all")
    values = [json.loads(line)["after"] for line in lines(*token, "--json")]
    assert [(value["owner"], value["tokenId"]) for value in values] == [("(redacted)", "toz45Qs3SbK2FawnbOLVmQ")] * 2
    assert lines(*token)[-1].endswith("DELEGATION_TOKEN  changed, in what is not shown")
    assert "User:" in run(*token, "--show-secrets").stdout
    assert "User:" not in run(*token).stdout


def test_secrets_are_redacted_and_names_from_the_log_harmless(tmp_path: Path) -> None:
    topic = "a\x1b[31m[bold]"
    batches = log.log_of(
        1, [log.metadata_version()], [log.topic(1, topic)],
        [r.ConfigRecord(resource_type=4, resource_name="", name="ssl.key.password", value="hush")],
        [r.ConfigRecord(resource_type=2, resource_name=topic, name="retention.ms", value="\x1b[2J")],
        [log.UNKNOWN],
    )  # fmt: skip
    directory = log.write_directory(tmp_path, batches)
    password = ("blame", directory, "config/BROKER//ssl.key.password", "--at-offset", 3)
    assert "hush" not in run(*password).stdout + run(*password, "--json").stdout
    assert "(redacted)" in run(*password).stdout
    assert '"after":"hush"' in run(*password, "--show-secrets", "--json").stdout
    config = ("blame", directory, f"config/TOPIC/{topic}/retention.ms")
    assert "\x1b" not in run(*config, "--at-offset", 4).stdout
    assert "--lenient goes on without it" in fault(*config)
    lenient = run(*config, "--lenient")
    assert "– → \\x1b[2J" in lenient.stdout
    assert "1 record skipped that can't be replayed, the first at offset 5" in lenient.stderr
    searched = ("bisect", directory, "offline_partitions > 5")
    assert "--to 4 searches what is before it, and --lenient goes on without it" in fault(*searched)
    assert "at any offset from 0 to 5 without 1 record that can't be replayed." in fault(*searched, "--lenient")
    found = run("bisect", directory, "global_topic_count == 1", "--lenient")
    assert "     2  " in found.stdout
    assert "1 record skipped that can't be replayed, the first at offset 5" in found.stderr


def test_bisect_says_from_where_on_a_condition_holds() -> None:
    assert lines("bisect", DIRECTORY, "offline_partitions > 5", "--from", 300) == [
        "     449  2026-11-21 07:46:16.256Z  offline_partitions > 5  holds, and not before"
    ]
    assert "holds already at this offset, the first of the range" in run(
        "bisect", DIRECTORY, "broker(3).fenced", "--from", 460
    ).stdout  # fmt: skip
    times = ("--from", "2026-11-21T07:46Z", "--to", "2026-11-21T07:46:20Z", "--json")
    assert json.loads(run("bisect", DIRECTORY, "offline_partitions > 5", *times).stdout) == {
        "condition": "offline_partitions > 5", "offset": 449, "timestamp": 1795247176256, "before": False,
        "after": True,
    }  # fmt: skip


AUTHORIZED = SAMPLES / "authorized"
LOG = AUTHORIZED / "log" / "__cluster_metadata-0"
BY = (
    "--log-tz",
    "UTC",
    "--authorizer-log",
    *(AUTHORIZED / f"node-{node}" / "kafka-authorizer.log.gz" for node in (1, 2)),
)


def test_the_principal_stands_below_each_change() -> None:
    shown = run("blame", LOG, "config/TOPIC/shared/retention.ms", "--all", *BY)
    assert [line.strip() for line in shown.stdout.splitlines()[2::2]] == [
        "by User:alice from 127.0.0.1, IncrementalAlterConfigs"
    ] * 3
    assert "kafka-authorizer.log: 20 requests that may change metadata; records come 0.094 s after" in shown.stderr
    (form,) = map(json.loads, lines("blame", LOG, "topic/t-0", *BY, "--json"))
    assert form["who"] == {
        "principal": "User:alice", "host": "127.0.0.1", "request": "CreateTopics", "timestamp": 1795978953539,
        "file": str(BY[3]), "candidates": [], "reason": None,
    }  # fmt: skip
    assert lines("blame", LOG, "topic/t-0", *BY, "--output", "csv")[0].endswith(",orEarlier,who")


def test_who_removed_a_thing_is_said_with_its_end() -> None:
    sentence = fault("blame", LOG, "topic/gone-5", *BY)
    assert sentence.endswith("before that. Removed by User:CN=Carol\\, Smith \\= ops from 127.0.0.1, DeleteTopics.")


def test_none_is_said_with_the_reason() -> None:
    shown = run("blame", LOG, "feature/metadata.version", *BY).stdout
    assert "by unknown: no line is of its time: the lines are of 2026-11-29 19:02:26.456Z to " in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--log-tz", "UTC"), "--log-tz is the zone of authorizer logs and audit files: name some."),
        (("--audit-map", "time=ts"), "--audit-map says how audit files are read: name them with --audit."),
    ],
)
def test_options_without_their_files_are_refused(words: tuple[str, ...], sentence: str) -> None:
    assert fault("blame", LOG, "topic/t-0", *words, code=2).startswith(sentence.removesuffix("."))


def test_lines_without_a_zone_need_one() -> None:
    sentence = fault("blame", LOG, "topic/t-0", "--authorizer-log", BY[3], code=2)
    assert "state no time zone: give that of its node with --log-tz" in sentence
    assert sentence.endswith(
        "(10 requests of them with a change that no other one can have made fit with --log-tz UTC)."
    )


def test_an_audit_file_shows_the_user_behind_a_tool(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    audit.write_text('{"ts":"2026-11-29T19:02:33.6Z","user":{"name":"jane"},"did":"made","on":"t-0"}\n', "utf-8")
    pairs = ("time=ts", "principal=user.name", "request=did", "resource=on", "CreateTopics=made")
    mapped = [word for pair in pairs for word in ("--audit-map", pair)]
    shown = lines("blame", LOG, "topic/t-0", *BY, "--audit", audit, *mapped)
    assert [line.strip() for line in shown[2:]] == [
        "by User:alice from 127.0.0.1, CreateTopics", "audit: by jane, CreateTopics",
    ]  # fmt: skip
    sentence = fault("blame", LOG, "topic/t-0", "--audit", audit, *mapped[:-2], code=2)
    assert sentence.endswith("did has 'made'; say which of them is which, as in --audit-map CreateTopics=WORD.")


def test_lines_of_another_time_are_refused() -> None:
    sentence = fault("blame", DIRECTORY, "topic/t-3-dj5", *BY, code=2)
    assert sentence.startswith(
        "No line is of the time of __cluster_metadata-0: the lines are of 2026-11-29 19:02:26.456Z to "
    )
