"""Responses to requests that have failed as a whole, in each version of each API, with the names asked for."""

from __future__ import annotations

import io
import uuid
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import timedelta
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from kio.schema.index import api_key_map
from kio.serial import entity_writer

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.requests.error_responses import error_response
from kraftlake.server.requests.messages import AT_ONCE, encoded, request_type, response_in, versions_of
from tests.server.requests.test_dispatcher import frame_of

NAMED = {
    "produce": 1, "fetch": 1, "list_offsets": 1, "offset_for_leader_epoch": 1, "delete_records": 1, "metadata": 0,
    "describe_topic_partitions": 0, "describe_configs": 0, "alter_configs": 0, "incremental_alter_configs": 0,
    "create_topics": 0, "delete_topics": 0, "create_partitions": 0, "alter_partition_reassignments": 1,
    "elect_leaders": 1,
}  # fmt: skip
"""The APIs that answer each thing that is named, and whether that is a partition of a topic."""
WHOLE = (
    "init_producer_id", "describe_cluster", "describe_log_dirs", "find_coordinator", "list_partition_reassignments",
    "describe_quorum", "unregister_broker", "broker_registration", "broker_heartbeat", "alter_partition",
    "assign_replicas_to_dirs", "allocate_producer_ids", "fetch_snapshot", "controller_registration", "envelope",
    "describe_acls", "describe_client_quotas", "update_features", "renew_delegation_token", "expire_delegation_token",
    "describe_delegation_token",
)  # fmt: skip
SERVED = {"find_coordinator": range(1)}
WITHOUT_ERROR = {("describe_log_dirs", 1), ("describe_log_dirs", 2)}
"""Old versions that have no field for the error."""
ALL = [(name, version) for name in (*NAMED, *WHOLE) for version in SERVED.get(name) or versions_of(name)]


def made(kind: Any) -> Any:
    """A request, or a part of one, with one of everything: the number 5, the name `foo`."""
    return kind(**{name: value_of(hint) for name, hint in get_type_hints(kind).items() if not name.startswith("__")})


def value_of(hint: Any) -> Any:
    if get_origin(hint) is tuple:
        return (value_of(get_args(hint)[0]),)
    if NoneType in get_args(hint):
        is_id = uuid.UUID in get_args(hint)
        return None if is_id else value_of(get_args(hint)[0])
    if is_dataclass(hint):
        return made(hint)
    if issubclass(hint, timedelta):
        return AT_ONCE
    values = {bool: False, int: 5, float: 5.0, str: "foo", bytes: b"foo"}
    return next(value for kind, value in values.items() if issubclass(hint, kind))


def parts(message: Any) -> list[Any]:
    """All parts of a message that have an error of their own."""
    found = [message] if hasattr(message, "error_code") else []
    for field in fields(message):
        value = getattr(message, field.name)
        for one in value if isinstance(value, tuple) else ():
            if is_dataclass(one):
                found += parts(one)
    return found


@pytest.mark.parametrize(("name", "version"), ALL)
def test_what_was_named_is_answered_with_the_error(name: str, version: int) -> None:
    asked = made(request_type(name, version))
    response = error_response(asked, ErrorCode.REQUEST_TIMED_OUT, "why")
    frame = frame_of(asked)
    assert response_in(frame, encoded(7, response, flexible_header=response.__flexible__)) == response
    answered = parts(response)
    errors = set() if (name, version) in WITHOUT_ERROR else {ErrorCode.REQUEST_TIMED_OUT}
    assert {one.error_code for one in answered} == errors
    if name not in NAMED or (name == "fetch" and version >= 13):
        assert [one is response for one in answered] == [True] * len(errors)
        return
    named = [one for one in answered if one is not response]
    assert len(named) == 1
    identity = {"index", "partition", "partition_index", "partition_id"} if NAMED[name] else {"name", "resource_name"}
    (value,) = [getattr(named[0], each) for each in identity if hasattr(named[0], each)]
    assert value == (5 if NAMED[name] else "foo")


ENTRIES = {
    "create_acls": ("creations", "results"), "delete_acls": ("filters", "filter_results"),
    "alter_client_quotas": ("entries", "entries"), "describe_user_scram_credentials": ("users", "results"),
}  # fmt: skip
"""The APIs that answer each entry, and the lists of entries and of answers."""


@pytest.mark.parametrize(("name", "version"), [(name, one) for name in ENTRIES for one in versions_of(name)])
def test_each_entry_is_answered_with_the_error(name: str, version: int) -> None:
    asked = made(request_type(name, version))
    entries, answers = ENTRIES[name]
    asked = replace(asked, **{entries: getattr(asked, entries) * 2})
    response = error_response(asked, ErrorCode.SECURITY_DISABLED, "why")
    assert response is not None
    assert response_in(frame_of(asked), encoded(7, response, flexible_header=response.__flexible__)) == response
    results = getattr(response, answers)
    assert [(one.error_code, one.error_message) for one in results] == [(ErrorCode.SECURITY_DISABLED, "why")] * 2
    if name == "alter_client_quotas":
        assert [(part.entity_type, part.entity_name) for part in results[0].entity] == [("foo", "foo")]


def test_each_user_of_changed_credentials_is_answered_once() -> None:
    asked = made(request_type("alter_user_scram_credentials", 0))
    deletions = (*asked.deletions, replace(asked.deletions[0], name="bar"))
    response = error_response(replace(asked, deletions=deletions), ErrorCode.REQUEST_TIMED_OUT, "why")
    assert response is not None
    assert [(one.user, one.error_code, one.error_message) for one in response.results] == [
        (user, ErrorCode.REQUEST_TIMED_OUT, "why") for user in ("bar", "foo")
    ]


@pytest.mark.parametrize("version", versions_of("create_delegation_token"))
def test_a_token_that_is_not_created_has_no_times(version: int) -> None:
    asked = made(request_type("create_delegation_token", version))
    response = error_response(asked, ErrorCode.NOT_CONTROLLER, "why")
    assert response is not None
    answer = encoded(7, response, flexible_header=response.__flexible__)
    assert answer.count(b"\xff" * 8) == 3
    found = response_in(frame_of(asked), answer)
    assert (found.error_code, found.principal_name, found.hmac) == (ErrorCode.NOT_CONTROLLER, "ANONYMOUS", b"")


def test_a_list_of_plain_numbers_is_answered_one_by_one() -> None:
    kind = request_type("list_partition_reassignments", 0)
    response = error_response(made(kind), ErrorCode.REQUEST_TIMED_OUT)
    assert response is not None
    assert [(one.name, [int(each.partition_index) for each in one.partitions]) for one in response.topics] == [
        ("foo", [5])
    ]


def test_a_topic_without_a_name_is_answered_in_versions_that_have_no_null() -> None:
    kind = request_type("metadata", 10)
    nameless = replace(made(kind).topics[0], name=None)
    response = error_response(replace(made(kind), topics=(nameless,)), ErrorCode.INVALID_REQUEST)
    assert response is not None
    assert response.topics[0].name == ""
    entity_writer(type(response))(io.BytesIO(), response)


def test_a_produce_that_wants_no_answer_gets_none() -> None:
    kind = request_type("produce", 9)
    assert error_response(replace(made(kind), acks=0), ErrorCode.UNKNOWN_SERVER_ERROR) is None


@dataclass
class Empty:
    """A request that names nothing."""

    __api_key__: int
    __version__: int
    acks: int = 1
    deletions: tuple[()] = ()
    upsertions: tuple[()] = ()


@pytest.mark.parametrize(("key", "name"), sorted(api_key_map.items()))
def test_a_request_of_any_api_has_an_answer_that_can_be_sent(key: int, name: str) -> None:
    """Clients may ask for what is not served, before they have logged in too."""
    answers = [error_response(Empty(key, version), ErrorCode.ILLEGAL_SASL_STATE) for version in versions_of(name)]
    sent = [encoded(1, answer, flexible_header=True) for answer in answers]
    assert sent
    assert all(sent)
