"""Audit files of tools, read by mappings that fit them or not."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

import kraftlake
from kraftlake.diagnosis.attribution.attribution import Attribution
from kraftlake.diagnosis.attribution.audit_files import read_audits
from kraftlake.diagnosis.attribution.witnesses import Witnesses
from kraftlake.runtime.errors import UsageError
from tests.diagnosis.attribution.sample import CAROL, DIRECTORY, LOGS

ENTRIES: list[dict[str, Any]] = [
    {
        "timestamp": "2026-11-29T19:02:33.500Z", "username": "jane", "operation": "createTopic",
        "resources": [{"type": "TOPIC", "id": "t-0"}], "result": {"success": True},
    },
    {"timestamp": "2026-11-29T19:02:34.000Z", "username": "jane", "operation": "getTopics", "resources": []},
    {
        "timestamp": "2026-11-29T19:02:38.700Z", "username": "joe, ops", "operation": "deleteTopic",
        "resources": [{"type": "TOPIC", "id": "gone-5"}],
    },
]  # fmt: skip
MAPPING = {
    "time": "timestamp", "principal": "$.username", "request": "operation", "resource": "resources.0.id",
    "CreateTopics": "createTopic|cloneTopic", "DeleteTopics": "deleteTopic",
}  # fmt: skip


def audit_file(folder: Path, *lines: str) -> str:
    path = folder / "audit.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines or map(json.dumps, ENTRIES)), "utf-8")
    return str(path)


def test_entries_are_requests_by_the_mapping(tmp_path: Path) -> None:
    (read,) = read_audits([audit_file(tmp_path, *map(json.dumps, ENTRIES), "{torn", "", '{"a":' * 5_000)], MAPPING)
    found = [(line.principal, line.host, line.request, line.resource) for line, _ in read.lines]
    assert found == [("jane", None, "CreateTopics", "t-0"), ("joe, ops", None, "DeleteTopics", "gone-5")]
    assert len(read.ends) == 3
    assert read.unreadable.total() == 2


def test_a_word_may_stand_for_several_requests_and_a_resource_be_a_path(tmp_path: Path) -> None:
    entry = {
        "time": "2026-11-29T19:02:33Z", "type": "Kafka.Topic.Update", "by": {"name": "jane"},
        "on": "kafka:/cluster/5f3e/topic/t-0",
    }  # fmt: skip
    mapping = {"time": "time", "principal": "by.name", "request": "type", "resource": "on"}
    mapping |= dict.fromkeys(("IncrementalAlterConfigs", "CreatePartitions"), "Kafka.Topic.Update")
    (read,) = read_audits([audit_file(tmp_path, json.dumps(entry))], mapping)
    assert [(line.request, line.resource) for line, _ in read.lines] == [
        ("IncrementalAlterConfigs", "t-0"), ("CreatePartitions", "t-0"),
    ]  # fmt: skip


def test_an_audit_file_names_the_user_and_the_authorizer_the_principal(tmp_path: Path) -> None:
    witnesses = Witnesses(authorizer_logs=LOGS, audits=(audit_file(tmp_path),), audit_map=MAPPING, log_zone=UTC)
    found = Attribution(kraftlake.open(DIRECTORY), witnesses)
    assert found.columns == ("who", "audit")
    named = [(who.authorizer, who.audit) for who in (found.of(54), found.of(70))]
    assert [[one and one.named and one.named.principal for one in pair] for pair in named] == [
        ["User:alice", "jane"], [CAROL, "joe, ops"],
    ]  # fmt: skip
    assert found.of(58).audit is not None
    assert found.of(58).to_json()["audit"]["reason"].startswith("no line")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"time": ""}, r"^--audit needs to know where an entry has its time: give --audit-map time=PATH"),
        ({"tine": "ts"}, r"'tine' is neither a field nor a request of Kafka's; did you mean time"),
        (
            {"principal": "user.name"},
            r"^--audit-map principal=user.name matches no entry of .*, which has 3 entries: give ",
        ),
        ({"resource": "topic"}, r"^--audit-map resource=topic matches no entry of .*, which has 3 entries: give "),
        ({"time": "username"}, r"^--audit-map time=username: what the entries of .* have there is no time with a date"),
        (
            {"CreateTopics": "x", "DeleteTopics": "y"},
            r"operation has 'createTopic', 'getTopics' and 'deleteTopic'; say which",
        ),
    ],
)
def test_a_mapping_that_matches_nothing_is_refused(tmp_path: Path, changed: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_audits([audit_file(tmp_path)], MAPPING | changed)


def test_a_file_without_entries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no line that is a JSON object"):
        read_audits([audit_file(tmp_path, "[2026-11-21] nothing")], MAPPING)
