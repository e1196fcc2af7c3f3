"""Which tokens a client is shown, and what a broker refuses before the active controller hears of it."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest

from kraftlake.image.kafka_names import AclOperation, AclPermissionType, PatternType, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.security_protocol import SecurityProtocol
from kraftlake.publisher.authorizer import StandardAuthorizer
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.records import metadata_records as r
from kraftlake.server.broker.serving.access import AccessHandlers, TokenForwarding
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Dispatcher, Handler, Peer, Request
from kraftlake.server.requests.messages import request_type, response_in
from tests.publisher.updates import cluster, uuid_of
from tests.server.broker.serving.test_config_changes import Context
from tests.server.requests.test_dispatcher import frame_of

KEY = "a key"


def token(token_id: str, owner: str, *renewers: str) -> r.DelegationTokenRecord:
    return r.DelegationTokenRecord(
        owner=owner, requester="User:admin", renewers=renewers, issue_timestamp=5, max_timestamp=200,
        expiration_timestamp=100, token_id=token_id,
    )  # fmt: skip


def acl(number: int, user: str, operation: AclOperation, kind: ResourceType, name: str) -> r.AccessControlEntryRecord:
    return r.AccessControlEntryRecord(
        id=uuid_of(number), resource_type=kind, resource_name=name, pattern_type=PatternType.LITERAL, principal=user,
        host="*", operation=operation, permission_type=AclPermissionType.ALLOW,
    )  # fmt: skip


def context() -> Context:
    """A broker with three tokens and ACLs for two who see tokens of others."""
    authorizer = StandardAuthorizer()
    made = cluster()
    made.introduce(authorizer)
    made.change(
        token("a", "User:alice", "User:bob"), token("b", "User:bob"), token("c", "User:carol"),
        acl(1, "User:dora", AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, "c"),
        acl(2, "User:erin", AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob"),
    )  # fmt: skip
    cache = MetadataCache(1)
    cache.update(made.image)
    return Context(cache=cache, authorization=Authorization(authorizer))


def asked(
    api: str,
    peer: Peer,
    *,
    key: str | None = KEY,
    forwarded: list[Request] | None = None,
    version: int = 3,
    **values: Any,
) -> Any:
    """The answer to a request of a peer; None for one that is forwarded, which is added to `forwarded`."""
    passed: list[Request] = [] if forwarded is None else forwarded
    forward: Any = passed.append
    tokens, access = TokenForwarding(context(), forward), AccessHandlers(context(), key)
    assert "a key" not in repr(access)
    logged: list[str] = []
    answers: list[bytes | None] = []
    handlers = {
        "create_delegation_token": tokens.create, "describe_delegation_token": access.tokens,
    }  # fmt: skip
    dispatcher = Dispatcher(
        {name: Handler(begin=begin) for name, begin in handlers.items()}, on_fault=lambda event, _: logged.append(event)
    )
    frame = frame_of(request_type(api, version)(**values))
    dispatcher.handle(frame, peer, answers.append)
    assert not logged
    assert len(answers) + len(passed) == 1
    return response_in(frame, answers[0] or b"") if answers else None


def peer(user: str, **more: Any) -> Peer:
    values = {"security_protocol": SecurityProtocol.SASL_PLAINTEXT, **more}
    return Peer(listener="SASL", host="127.0.0.1", principal=f"User:{user}", **values)


def owners(version: int, *names: str) -> tuple[Any, ...]:
    module = import_module(f"kio.schema.describe_delegation_token.v{version}.request")
    return tuple(module.DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in names)


@pytest.mark.parametrize(
    ("user", "of", "seen"),
    [
        ("alice", None, "a"), ("bob", None, "ab"), ("carol", None, "c"), ("dora", None, "c"), ("erin", None, "b"),
        ("frank", None, ""), ("bob", ("alice",), "a"), ("bob", ("bob",), "ab"), ("dora", ("bob", "carol"), "c"),
        ("bob", (), ""),
    ],
)  # fmt: skip
def test_own_tokens_and_those_that_an_acl_shows_are_described(user: str, of: tuple[str, ...] | None, seen: str) -> None:
    for version in (1, 2, 3):
        wanted = None if of is None else owners(version, *of)
        answer = asked("describe_delegation_token", peer(user), version=version, owners=wanted)
        assert answer.error_code == ErrorCode.NONE
        assert sorted(one.token_id for one in answer.tokens) == sorted(seen)
        for one in answer.tokens:
            assert (len(one.hmac), one.issue_timestamp, one.expiry_timestamp, one.max_timestamp) == (64, 5, 100, 200)


def test_tokens_are_not_described_without_a_key_nor_to_strangers() -> None:
    strangers = (peer("alice", security_protocol=SecurityProtocol.PLAINTEXT), peer("alice", token_authenticated=True))
    for stranger in strangers:
        answer = asked("describe_delegation_token", stranger, owners=None)
        assert (answer.error_code, answer.tokens) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ())
    answer = asked("describe_delegation_token", peer("alice"), key=None, owners=None)
    assert (answer.error_code, answer.tokens) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, ())


def creation(owner: str | None = None, renewer: tuple[str, str] | None = None) -> dict[str, Any]:
    kind = import_module("kio.schema.create_delegation_token.v3.request").CreatableRenewers
    renewers = () if renewer is None else (kind(principal_type=renewer[0], principal_name=renewer[1]),)
    return {
        "owner_principal_type": None if owner is None else "User", "owner_principal_name": owner, "renewers": renewers,
        "max_lifetime": timedelta(0),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sender", "values", "error"),
    [
        (peer("alice"), creation(), None),
        (peer("alice"), creation("alice"), None),
        (peer("alice"), creation("bob"), ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
        (peer("alice"), creation(None, ("Group", "g")), ErrorCode.INVALID_PRINCIPAL_TYPE),
        (peer("alice"), creation(None, ("User", "g")), None),
        (peer("alice", token_authenticated=True), creation(), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    ],
)
def test_a_token_that_a_client_may_not_have_is_refused_by_the_broker(
    sender: Peer, values: dict[str, Any], error: ErrorCode | None
) -> None:
    passed: list[Request] = []
    answer = asked("create_delegation_token", sender, forwarded=passed, **values)
    assert (None if answer is None else answer.error_code) == error
    assert len(passed) == (error is None)
    if answer is not None:
        assert (answer.principal_name, answer.token_requester_principal_name) == (
            values["owner_principal_name"] or "alice", "alice",
        )  # fmt: skip
