"""`kraftlake events`: the same events as the table, without Spark, and what picks some of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records import metadata_records as r
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.reading.chunks import BULK_FROM
from kraftlake.tables.events.events_table import KINDS
from kraftlake.tables.events.events_writer import EventsWriter
from tests.cli.made_logs import batch_of, directory_of, hostile_log, unreplayable_log
from tests.cli.running import DIRECTORY, ROOT, SAMPLES, TORN, fault, run, run_json
from tests.cli.test_interactive import ANSI, on_terminal
from tests.tables.folding import fold_into


def events_of(*words: object, source: object = DIRECTORY) -> list[dict[str, Any]]:
    lines = run("events", source, *words, "--json").stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_they_are_the_rows_of_the_table_events(tmp_path: Path) -> None:
    import_source(DIRECTORY, tmp_path / "lake")
    (rows,) = fold_into(MetadataLog.open(tmp_path / "lake"), [EventsWriter()])
    expected = rows.to_pylist()
    for row in expected:
        row["timestamp"] = round(row["timestamp"].timestamp() * 1000)
        row["topicId"] = row.pop("topic_id")
        row["clusterId"] = "VXUoBgBGTaWWfCM4Toybuw"
    assert events_of() == expected
    assert events_of(source=tmp_path / "lake") == expected


def test_a_range_of_offsets_or_times_has_the_events_of_its_batches() -> None:
    everything = events_of()
    assert events_of("--from", 403, "--to", 458) == [event for event in everything if event["offset"] == 458]
    assert events_of("--from", "2026-11-21T07:46:16Z", "--to", "2026-11-21T07:46:16.5Z") == events_of(
        "--from", 401, "--to", 458
    )


def test_records_before_the_first_image_are_reported_as_left_out(tmp_path: Path) -> None:
    log = tmp_path / "__cluster_metadata-0"
    log.mkdir()
    for pattern in ("*3532.log", "*5488.log", "*3038-*.checkpoint", "*4593-*.checkpoint"):
        for file in DIRECTORY.glob(pattern):
            (log / file.name).write_bytes(file.read_bytes())
    behind = "at offset 4593: from 3532 to there the log has records but no image\n"
    assert run("events", log, "--json").stderr == f"warning: events begin {behind}"
    assert run("page", log, "-o", tmp_path / "page.html").stderr == f"warning: the page begins {behind}"
    assert run("replay", log, "--broker", 1).stderr == f"warning: the replay begins {behind}"
    assert behind.replace("at", "from", 1).replace(":", " on:", 1) in run("doctor", log, code=3).stderr
    whole = [["events", log, "--from", 4593], ["replay", log, "--broker", 1, "--to", 3037], ["events", DIRECTORY]]
    assert [run(*words).stderr for words in whole] == [""] * 3


def test_topics_partitions_brokers_and_kinds_pick_events() -> None:
    everything = events_of()
    assert events_of("--topic", "t-2*") == [event for event in everything if (event["topic"] or "").startswith("t-2")]
    assert events_of("--broker", 3) == [event for event in everything if event["broker"] == 3]
    fenced = [event["offset"] for event in events_of("--broker", 3, "--kind", "Broker-Fenced")]
    assert fenced == [458, 1277, 1747, 4905, 5639]
    assert {event["kind"] for event in events_of("--kind", "broker_*fenced")} == {"broker_fenced", "broker_unfenced"}


def test_a_partitions_events_begin_with_its_topics() -> None:
    events = events_of("--partition", "t-22-3h4-2")
    assert events[0]["kind"] == "topic_created"
    assert events[0]["subject"] == "topic t-22-3h4"
    assert {event["subject"] for event in events[1:]} == {"t-22-3h4-2"}
    led = [(event["kind"], event["after"]) for event in events if event["field"] == "leader"]
    assert led[:3] == [("leader_moved", "4"), ("leader_lost", None), ("leader_elected", "4")]


def test_words_name_offset_and_time_and_say_so_where_nothing_happened() -> None:
    lines = run("events", DIRECTORY, "--kind", "broker_fenced", "--broker", 3).stdout.splitlines()
    assert lines[0] == "     458  2026-11-21 07:46:16.256Z  broker 3 is fenced"
    assert run("events", DIRECTORY, "--topic", "elr-a", "--to", 500).stdout == "nothing of that kind happened\n"
    assert run("events", DIRECTORY, "--from", 5736).stdout == "nothing happened\n"


@pytest.mark.parametrize("width", [50, 80, 120])
def test_sentences_are_wrapped_beside_offset_and_time_on_a_terminal(width: int) -> None:
    received = ANSI.sub("", on_terminal("events", DIRECTORY, "--to", 500, width=width))
    lines = received.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert ("── 2026-11-21 UTC" in lines) == (width < 110)
    if width == 50:
        assert any(line.startswith(" " * 20) for line in lines)


def test_a_torn_tail_and_skipped_records_are_reported_and_hostile_names_are_shown_as_escapes(tmp_path: Path) -> None:
    assert "torn" in run("events", TORN).stderr
    log = unreplayable_log(tmp_path)
    assert "offset 2" in fault("events", log, "--from", 2)
    stopped = run("events", log, code=1)
    assert "topic foo is created" in stopped.stdout
    assert "offset 2" in stopped.stderr
    assert "1 record skipped" in run("events", log, "--lenient").stderr
    shown = run("events", hostile_log(tmp_path / "hostile")).stdout
    assert "\x1b" not in shown
    assert r"\x1b[31mred" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--kind", "broker_fence"], "did you mean broker_fenced"),
        (["--kind", "q"], "leader_lost"),
        (["--from", 9, "--to", 3], "backwards"),
        (["--from", "then"], "'then' is neither an offset nor a time"),
        (["--partition", "foo"], "'foo' is not a partition"),
    ],
)
def test_a_wrong_wish_is_named(words: list[object], sentence: str) -> None:
    assert sentence in run("events", DIRECTORY, *words, code=2).stderr


def test_times_with_nothing_in_between_are_reported() -> None:
    sentence = fault("events", DIRECTORY, "--from", "2026-11-21T07:46:15.9Z", "--to", "2026-11-21T07:46:16Z")
    assert sentence == (
        "Nothing was written to __cluster_metadata-0 between these times: offset 400 is of before them, "
        "401 of after them."
    )


def test_neither_pyspark_nor_a_lake_is_needed(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    generate_lake(lake, Plan(topics=3))
    program = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['delta'] = None\n"
        "from kraftlake.cli.application import application\n"
        f"application.main(['events', {str(lake)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "is created with" in done.stdout


def test_every_kind_can_be_asked_for() -> None:
    from kraftlake.cli.options.parameters import KINDS as PARAMETER

    assert [PARAMETER.convert(kind, None, None) for kind in KINDS] == [(kind,) for kind in KINDS]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topic", "nix"], "no topic matches nix at any offset of this log"),
        (["--partition", "fixed-a-99"], "there is no partition fixed-a-99 at any offset of this log"),
        (["--partition", "nix-0"], "there is no partition nix-0 at any offset of this log"),
        (["--broker", 99], "broker 99 is not registered at any offset of this log; registered brokers: 1, 2, 3, 4"),
        (["--broker", 3, "--topic", "nix"], "no topic matches nix"),
    ],
)
def test_what_the_log_never_had_is_an_error(words: list[object], sentence: str) -> None:
    assert sentence in fault("events", DIRECTORY, "--from", 399, "--to", 400, *words)
    assert run("events", DIRECTORY, "--from", 399, "--to", 400, "--broker", 3).stderr == ""


def test_a_topic_is_asked_for_by_the_id_that_it_has_or_had() -> None:
    words = ("events", DIRECTORY, "--kind", "topic_*", "--topic-id")
    assert [line.split("Z  ", 1)[1] for line in run(*words, "nANz2uTcTHue83qLIJ1OVA").stdout.splitlines()] == [
        "topic big-a is created with 300 partitions, replication factor 2",
        "topic big-a with 300 partitions, replication factor 2 to 3 is gone",
    ]
    by_id = run("events", DIRECTORY, "--topic-id", "hurOkaHyTSargjoz9lrYFQ", "--json").stdout
    assert {json.loads(line)["topicId"] for line in by_id.splitlines()} == {"hurOkaHyTSargjoz9lrYFQ"}
    either = run(
        "events", DIRECTORY, "--topic-id", "nANz2uTcTHue83qLIJ1OVA", "--partition", "fixed-a-3", "--json"
    ).stdout
    assert {json.loads(line)["topic"] for line in either.splitlines()} == {"big-a", "fixed-a"}
    nobody = "AAAAAAAAAAAAAAAAAAAAAQ"
    assert f"no topic has the id {nobody} at any offset" in fault("events", DIRECTORY, "--topic-id", nobody)


def test_log_image_diff_and_events_show_the_same_of_a_delegation_token() -> None:
    token = "rPWBVWbES9q4s5sUau3nyg"
    record = run_json("log", DIRECTORY, "--from", 377, "--to", 377)
    image = run_json("image", DIRECTORY, "--at-offset", 377)["delegationTokens"][token]
    diff = run_json("diff", DIRECTORY, 376, 377)["delegationTokens"]["added"][token]
    for shown in (record["data"], image, diff):
        assert shown.pop("tokenId") == token
        assert set(shown.values()) == {"(redacted)"}
    (event,) = events_of("--from", 377, "--to", 377)
    assert event["sentence"] == f"delegation token {token} was issued"


@pytest.mark.parametrize("bulk_from", [1, BULK_FROM])
def test_events_show_sensitive_configs_on_demand_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bulk_from: int
) -> None:
    monkeypatch.setattr("kraftlake.replay.reading.chunks.BULK_FROM", bulk_from)
    secret = r.ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="hunter2")
    first = batch_of(0, r.FeatureLevelRecord(name="metadata.version", feature_level=19))
    log = directory_of(tmp_path, [first, batch_of(1, secret), batch_of(2, r.NoOpRecord())])
    assert [event["after"] for event in events_of("--kind", "config_changed", source=log)] == ["(redacted)"]
    assert [event["after"] for event in events_of("--kind", "config_changed", "--show-secrets", source=log)] == [
        "hunter2"
    ]


@pytest.mark.parametrize("partition", ["t-22-3h4-99", f"t-22-3h4-{2**70}"])
def test_a_partition_that_a_topic_never_had_is_not_shown_as_created_with_it(partition: str) -> None:
    sentence = fault("events", DIRECTORY, "--partition", partition)
    assert (
        sentence
        == f"there is no partition {partition} at any offset of this log: t-22-3h4 had t-22-3h4-0 to t-22-3h4-4"
    )


def test_a_partition_that_was_added_later_begins_with_the_growth_of_its_topic() -> None:
    grown = next(event for event in events_of("--kind", "partitions_added"))
    first, last = int(grown["before"]), int(grown["after"]) - 1
    for number, kinds in ((first - 1, ["topic_created", "partitions_added"]), (last, ["partitions_added"])):
        events = events_of("--partition", f"{grown['topic']}-{number}", "--to", grown["offset"])
        assert [event["kind"] for event in events if event["partition"] is None] == kinds


def test_the_clients_that_made_events_stand_below_them() -> None:
    log = SAMPLES / "authorized"
    by = ("--log-tz", "UTC", "--authorizer-log", log / "node-1" / "kafka-authorizer.log.gz")
    words = ("events", log / "log" / "__cluster_metadata-0", "--from", 54, "--to", 71, *by)
    lines = run(*words).stdout.splitlines()
    carol = "by User:CN=Carol\\, Smith \\= ops from 127.0.0.1"
    assert [line.strip() for line in lines[1::2]] == [
        "by User:alice from 127.0.0.1, CreateTopics", "by User:alice from 127.0.0.1, IncrementalAlterConfigs",
        "by User:bob from 127.0.0.1, CreateAcls", "by User:bob from 127.0.0.1, AlterUserScramCredentials",
        f"{carol}, CreatePartitions", f"{carol}, DeleteTopics",
    ]  # fmt: skip
    forms = [json.loads(line) for line in run(*words, "--json").stdout.splitlines()]
    assert [form["who"]["principal"] for form in forms[:3]] == ["User:alice", "User:alice", "User:bob"]
    assert run(*words, "--kind", "fenced").stdout == "nothing of that kind happened\n"
    assert "--count-by counts them" in fault(*words, "--count-by", "kind", code=2)
