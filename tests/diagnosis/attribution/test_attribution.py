"""The clients of changes: those of the sample of real nodes, and of made logs with lines of every kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import kraftlake
from kraftlake.diagnosis.attribution.attribution import Attribution
from kraftlake.diagnosis.attribution.findings import Finding
from kraftlake.diagnosis.attribution.witnesses import Witnesses
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import UsageError
from tests.diagnosis.attribution.sample import CAROL, DIRECTORY, LOGS, line
from tests.replay import made_logs as log

MOMENT = 1795247176256  # 07:46:16.256
CLOCK = "07:46:16,250"
SCRAM = r.UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096)
ALTER = ("ALTER", "Cluster:LITERAL:kafka-cluster", "AlterUserScramCredentials")


def directory(folder: Path, batches: Sequence[RecordBatch]) -> Path:
    return log.write_directory(folder / "log", batches)


def source(folder: Path, *messages: Message, time: int = MOMENT) -> LogSource:
    batches = [log.data(offset, message, time=time) for offset, message in enumerate(messages)]
    return kraftlake.open(directory(folder, batches))


def attribution(source: LogSource, folder: Path, lines: Iterable[str], zone: timezone | None = UTC) -> Attribution:
    folder.mkdir(exist_ok=True)
    path = folder / "kafka-authorizer.log"
    path.write_text("".join(f"{one}\n" for one in lines), "utf-8")
    return Attribution(source, Witnesses(authorizer_logs=(str(path),), log_zone=zone))


def finding(folder: Path, message: Message, *lines: str, leads: bool = True) -> Finding:
    heartbeat = [line(CLOCK, "User:node", "CLUSTER_ACTION", ALTER[1], "BrokerHeartbeat")] if leads else []
    found = attribution(source(folder, message), folder, [*lines, *heartbeat]).of(0).authorizer
    assert found is not None
    return found


def test_each_change_of_real_nodes_is_named() -> None:
    found = Attribution(kraftlake.open(DIRECTORY), Witnesses(authorizer_logs=LOGS, log_zone=UTC))
    offsets = {54: "User:alice", 58: "User:alice", 61: "User:bob", 64: "User:bob", 67: CAROL, 70: CAROL}
    named = {offset: finding.named for offset in offsets if (finding := found.of(offset).authorizer) is not None}
    assert {offset: one and one.principal for offset, one in named.items()} == offsets
    assert [one and one.request for one in named.values()] == [
        "CreateTopics", "IncrementalAlterConfigs", "CreateAcls", "AlterUserScramCredentials", "CreatePartitions",
        "DeleteTopics",
    ]  # fmt: skip
    assert {one and one.host for one in named.values()} == {"127.0.0.1"}
    (note,) = found.notes()
    assert "records come 0.094 s after their lines, by 10 pairs" in note


def test_of_the_lines_of_a_cluster_the_one_that_fits_is_named(tmp_path: Path) -> None:
    found = finding(
        tmp_path, log.topic(1, "x"),
        line(CLOCK, "User:a"),
        line(CLOCK, "User:b", resource="Topic:LITERAL:y"),
        line(CLOCK, "User:c", request="Metadata"),
        line(CLOCK, "User:d", decision="Denied", rule="DefaultDeny"),
        line(CLOCK, "User:e", "DESCRIBE_CONFIGS"),
        line("07:46:14,000", "User:f"),
        line("07:46:16,700", "User:g"),
    )  # fmt: skip
    assert found.named is not None
    assert found.named.principal == "User:a"


def test_a_topic_of_a_right_on_the_cluster_is_named_by_the_line_on_its_configs(tmp_path: Path) -> None:
    cluster = "Cluster:LITERAL:kafka-cluster"
    everywhere = "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=*, patternType=LITERAL, …])"
    of_y = [
        line(CLOCK, "User:b", resource=cluster),
        line(CLOCK, "User:b", "DESCRIBE_CONFIGS", "Topic:LITERAL:y", rule=everywhere),
    ]
    of_x = [line(CLOCK, "User:a", resource=cluster), line(CLOCK, "User:a", "DESCRIBE_CONFIGS", rule=everywhere)]
    silent = line(CLOCK, "User:c", resource=cluster)
    found = finding(tmp_path, log.topic(1, "x"), *of_y, *of_x)
    assert found.named is not None
    assert found.named.principal == "User:a"
    several = finding(tmp_path / "more", log.topic(1, "x"), *of_y, *of_x, silent)
    assert [one.principal for one in several.candidates] == ["User:a", "User:c"]


def test_several_are_listed_with_the_reason(tmp_path: Path) -> None:
    found = finding(tmp_path, SCRAM, line(CLOCK, "User:a", *ALTER), line(CLOCK, "User:b", *ALTER))
    assert found.named is None
    assert [one.principal for one in found.candidates] == ["User:a", "User:b"]
    assert found.reason == (
        "2 clients asked for AlterUserScramCredentials at its time, and such lines name the cluster alone"
    )
    same = finding(tmp_path / "more", SCRAM, line(CLOCK, "User:a", *ALTER), line("07:46:16,251", "User:a", *ALTER))
    assert same.named is not None


def test_a_log_of_no_controller_names_none_alone_by_lines_without_a_resource(tmp_path: Path) -> None:
    found = finding(tmp_path, SCRAM, line(CLOCK, "User:a", *ALTER), leads=False)
    assert found.named is None
    assert [one.principal for one in found.candidates] == ["User:a"]
    assert found.reason is not None
    assert found.reason.startswith("the line names no resource, and its clock may be another one")
    of_topic = finding(tmp_path / "more", log.topic(1, "x"), line(CLOCK, "User:a"), leads=False)
    assert of_topic.named is not None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (log.topic(1, "y"), "no line at its time allows CreateTopics on y"),
        (r.RegisterBrokerRecord(broker_id=1, broker_epoch=0), "no client asks for this: a broker registers itself"),
        (r.NoOpRecord(), "no client asks for this: the controller writes such records by itself"),
    ],
)
def test_none_has_a_reason(tmp_path: Path, message: Message, reason: str) -> None:
    found = finding(tmp_path, message, line(CLOCK))
    assert not found.candidates
    assert found.reason == reason


def test_what_the_controller_may_do_by_itself_names_none_alone(tmp_path: Path) -> None:
    change = r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, leader=2)
    elect = line(CLOCK, "User:a", "ALTER", "Cluster:LITERAL:kafka-cluster", "ElectLeaders")
    found = attribution(source(tmp_path, log.topic(1), log.partition(1), change), tmp_path, [elect]).of(2).authorizer
    assert found is not None
    assert found.named is None
    assert [one.principal for one in found.candidates] == ["User:a"]
    assert found.reason == "the controller elects leaders by itself, too"
    assert not found.of_nodes


def test_where_no_client_asked_nodes_did_it_if_they_can(tmp_path: Path) -> None:
    change = r.PartitionChangeRecord(topic_id=log.uuid_of(1), partition_id=0, leader=2)
    found = attribution(source(tmp_path, log.topic(1), log.partition(1), change), tmp_path, [line(CLOCK)]).of(2)
    assert not found.is_of_client
    assert found.authorizer is not None
    assert found.authorizer.reason == (
        "no line at its time allows ElectLeaders or UnregisterBroker (the controller elects leaders by itself, too)"
    )


def test_a_change_of_another_time_than_the_lines_says_so(tmp_path: Path) -> None:
    batches = [log.data(0, log.topic(1, "x"), time=MOMENT), log.data(1, log.topic(2, "y"), time=MOMENT + 3_600_000)]
    opened = kraftlake.open(directory(tmp_path, batches))
    found = attribution(opened, tmp_path, [line(CLOCK), line("07:46:20,000", request="Fetch")]).of(1).authorizer
    assert found is not None
    assert found.reason == (
        "no line is of its time: the lines are of 2026-11-21 07:46:16.250Z to 2026-11-21 07:46:20.000Z"
    )


def test_a_record_without_a_time_and_a_snapshot_name_none(tmp_path: Path) -> None:
    opened = source(tmp_path, log.topic(1, "x"), time=-1)
    found = attribution(opened, tmp_path, [line(CLOCK)]).of(0).authorizer
    assert found is not None
    assert found.reason == "the record has no time"


def test_a_clock_that_is_behind_is_estimated(tmp_path: Path) -> None:
    names = [f"t-{number}" for number in range(4)]
    opened = source(tmp_path, *(log.topic(number, name) for number, name in enumerate(names)), SCRAM)
    lines = [line("07:44:46,250", f"User:{name}", resource=f"Topic:LITERAL:{name}") for name in names]
    found = attribution(
        opened, tmp_path, [*lines, line("07:44:46,250", "User:s", *ALTER), line(CLOCK, "User:b", *ALTER)]
    )
    assert [note.split("; ")[1] for note in found.notes()] == ["records come 1 min 30 s after their lines, by 4 pairs"]
    of_scram = found.of(4).authorizer
    assert of_scram is not None
    assert of_scram.named is not None
    assert of_scram.named.principal == "User:s"


def test_a_zone_that_is_not_stated_is_asked_for_with_the_one_that_fits(tmp_path: Path) -> None:
    names = [f"t-{number}" for number in range(4)]
    opened = source(tmp_path, *(log.topic(number, name) for number, name in enumerate(names)))
    lines = [line("09:46:16,250", resource=f"Topic:LITERAL:{name}") for name in names]
    with pytest.raises(UsageError, match=r"state no time zone: .* \(4 requests .* fit with --log-tz \+02:00\)\.$"):
        attribution(opened, tmp_path, lines, None)
    with pytest.raises(UsageError, match=r"With --log-tz UTC the lines of .* are 2 hours after the records"):
        attribution(opened, tmp_path, lines)
    found = attribution(opened, tmp_path, lines, timezone(timedelta(hours=2))).of(0).authorizer
    assert found is not None
    assert found.named is not None


def test_lines_of_an_hour_that_comes_twice_are_left_out(tmp_path: Path) -> None:
    twice = line(CLOCK).replace("2026-11-21 07", "2026-10-25 02")
    opened = source(tmp_path, log.topic(1, "x"))
    berlin = [line(CLOCK).replace(" 07:", " 08:"), twice]
    (tmp_path / "lines").write_text("".join(f"{one}\n" for one in berlin), "utf-8")
    witnesses = Witnesses(authorizer_logs=(str(tmp_path / "lines"),), log_zone=ZoneInfo("Europe/Berlin"))
    (note,) = Attribution(opened, witnesses).notes()
    assert note.endswith("left out: 1 line of an hour that clocks in Europe/Berlin show twice or never")


def test_lines_of_another_day_are_refused(tmp_path: Path) -> None:
    day = [line(CLOCK).replace("2026-11-21", "2026-11-20")]
    with pytest.raises(
        UsageError, match=r"No line is of the time of .*: the lines are of 2026-11-20 07:46:16.250Z to "
    ):
        attribution(source(tmp_path, log.topic(1, "x")), tmp_path, day)


def test_what_is_missing_in_lines_is_said(tmp_path: Path) -> None:
    opened = source(tmp_path, log.topic(1, "x"))
    (denied,) = attribution(opened, tmp_path, [line(CLOCK, decision="Denied")]).notes()
    assert (
        "denied operations alone: Kafka logs allowed ones where kafka.authorizer.logger has the level DEBUG" in denied
    )
    notes = [*attribution(opened, tmp_path, [line(CLOCK, resource="Topic:LITERAL:z"), line(CLOCK)[:100]]).notes()]
    assert notes[0].endswith("left out: 1 line torn or not to be read in one way")
    assert notes[1].startswith("none of the lines fits a change of this log")
