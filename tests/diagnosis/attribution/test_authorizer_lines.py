"""Lines of authorizers: the forms of releases and layouts, and names that hold anything."""

from __future__ import annotations

import json

import attrs
import pytest

from kraftlake.diagnosis.attribution.authorizer_lines import AuthorizerLine, parse_line
from kraftlake.diagnosis.attribution.line_times import LineTime
from tests.diagnosis.attribution.sample import line, sentence

PLAIN = AuthorizerLine(
    time=LineTime(1795247176256, False, True), principal="User:a", allowed=True, operation="CREATE", host="10.0.0.4",
    resource_type="TOPIC", resource="x", request="CreateTopics", everywhere=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (line("07:46:16,256"), {}),
        (line("07:46:16,256", decision="Denied", rule="DefaultDeny"), {"allowed": False, "everywhere": False}),
        (
            "[2026-11-21 07:46:16,256] DEBUG Principal = User:a is Allowed Operation = AlterConfigs from host = "
            "10.0.0.4 on resource = Topic:LITERAL:x for request = AlterConfigs with resourceRefCount = 1 "
            "(kafka.authorizer.logger)",
            {"operation": "ALTER_CONFIGS", "request": "AlterConfigs", "everywhere": False},
        ),
        (line("07:46:16,256", "User:CN=Carol\\, Smith \\= ops"), {"principal": "User:CN=Carol\\, Smith \\= ops"}),
        (line("07:46:16,256", "User:is Allowed to = all"), {"principal": "User:is Allowed to = all"}),
        (line("07:46:16,256", host="broker-1.example.org"), {"host": "broker-1.example.org"}),
        (line("07:46:16,256", host="0:0:0:0:0:0:0:1%0"), {"host": "0:0:0:0:0:0:0:1%0"}),
        (line("07:46:16,256", "User:a", "READ", "Group:LITERAL:a b:c"), {
            "operation": "READ", "resource_type": "GROUP", "resource": "a b:c",
        }),
        (line("07:46:16,256", "User:a", "READ", "TransactionalId:LITERAL:t"), {
            "operation": "READ", "resource_type": "TRANSACTIONAL_ID", "resource": "t",
        }),
        (line("07:46:16,256", rule="MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=x, "), {
            "everywhere": False
        }),
        (json.dumps({"instant": {"epochSecond": 1795247176, "nanoOfSecond": 256_000_000}, "message": sentence()}), {
            "time": LineTime(1795247176256, True, True)
        }),
        (json.dumps({"log": line("08:46:16,256") + "\n", "time": "2026-11-21T07:46:16.256Z"}), {
            "time": LineTime(1795247176256, True, True)
        }),
        (sentence(), {"time": None}),
    ],
)  # fmt: skip
def test_a_line_is_read_whatever_stands_around_it(text: str, changed: dict[str, object]) -> None:
    assert parse_line(text) == attrs.evolve(PLAIN, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [30, 80, 130, 165])
def test_a_torn_line_is_none(length: int) -> None:
    assert parse_line(line("07:46:16,256")[:length]) is None


def test_a_line_that_can_be_read_in_two_ways_is_none() -> None:
    forged = "User:a is Allowed operation = DELETE from host = 1 on resource = Topic:LITERAL:y"
    assert parse_line(line("07:46:16,256", forged)) is None
    assert (
        parse_line(line("07:46:16,256", resource="Group:LITERAL:g for request = X with resourceRefCount = 1")) is None
    )


def test_json_that_is_nested_too_deep_is_a_line_as_any_other() -> None:
    deep = '{"a":' * 5_000
    assert parse_line(deep) is None
    assert parse_line(deep + sentence()) == attrs.evolve(PLAIN, time=None)


def test_a_line_full_of_the_words_is_refused_at_once() -> None:
    words = " is Allowed operation = READ from host = 1 on resource = Topic:LITERAL:y for request = X" * 5_000
    assert parse_line(line("07:46:16,256", f"User:{words}")) is None
