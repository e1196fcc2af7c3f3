from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.kafka_names import AclOperation, AclPermissionType, PatternType, ResourceType
from kraftlake.publisher.acl_cache import AclCache
from kraftlake.publisher.authorizer import (
    Action,
    AuthorizerConfig,
    AuthorizerNotReadyError,
    StandardAuthorizer,
    is_in_range,
)
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import UsageError
from tests.publisher.updates import cluster
from tests.replay.made_logs import uuid_of

ALICE, HOST = "User:alice", "10.0.0.7"


def acl(
    number: int,
    name: str = "foo",
    *,
    allow: bool = True,
    pattern: PatternType = PatternType.LITERAL,
    principal: str = ALICE,
    host: str = "*",
    operation: AclOperation = AclOperation.READ,
    resource: ResourceType = ResourceType.TOPIC,
) -> r.AccessControlEntryRecord:
    return r.AccessControlEntryRecord(
        id=uuid_of(number),
        resource_type=resource,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=AclPermissionType.ALLOW if allow else AclPermissionType.DENY,
    )


def authorizer_of(*acls: r.AccessControlEntryRecord, **config: object) -> StandardAuthorizer:
    authorizer = StandardAuthorizer(AuthorizerConfig(**config))  # type: ignore[arg-type]
    cluster(*acls).introduce(authorizer)
    return authorizer


def allowed(
    authorizer: StandardAuthorizer,
    name: str = "foo",
    operation: AclOperation = AclOperation.READ,
    *,
    principal: str = ALICE,
    host: str = HOST,
) -> bool:
    action = Action(operation=operation, resource_type=ResourceType.TOPIC, resource_name=name)
    return authorizer.authorize(principal, host, action).allowed


def test_an_acl_allows_its_operation_and_nothing_else() -> None:
    authorizer = authorizer_of(acl(1))
    assert allowed(authorizer)
    assert not allowed(authorizer, "food")
    assert not allowed(authorizer, operation=AclOperation.WRITE)
    assert not allowed(authorizer, principal="User:bob")


@pytest.mark.parametrize(
    "denying",
    [acl(2, allow=False), acl(2, "fo", pattern=PatternType.PREFIXED, allow=False), acl(2, "*", allow=False),
     acl(2, allow=False, operation=AclOperation.ALL), acl(2, allow=False, principal="User:*")],
)  # fmt: skip
def test_one_deny_acl_overrides_all_allow_acls(denying: r.AccessControlEntryRecord) -> None:
    authorizer = authorizer_of(acl(1), denying)
    assert not allowed(authorizer)
    decision = authorizer.authorize(
        ALICE, HOST, Action(operation=AclOperation.READ, resource_type=ResourceType.TOPIC, resource_name="foo")
    )
    assert decision.acl == StandardAcl.from_record(denying)


def test_prefixes_and_the_wildcard_match() -> None:
    authorizer = authorizer_of(acl(1, "fo", pattern=PatternType.PREFIXED), acl(2, "*", operation=AclOperation.WRITE))
    assert allowed(authorizer, "foo")
    assert allowed(authorizer, "fo")
    assert not allowed(authorizer, "f")
    assert allowed(authorizer, "anything", AclOperation.WRITE)
    assert not allowed(authorizer_of(acl(1, "fo")), "foo"), "a literal name is no prefix"
    assert not allowed(authorizer_of(acl(1, "*", pattern=PatternType.PREFIXED)), "foo"), "a prefixed * is that letter"


@pytest.mark.parametrize(
    ("granted", "implied"),
    [
        (AclOperation.READ, AclOperation.DESCRIBE),
        (AclOperation.WRITE, AclOperation.DESCRIBE),
        (AclOperation.DELETE, AclOperation.DESCRIBE),
        (AclOperation.ALTER, AclOperation.DESCRIBE),
        (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS),
        (AclOperation.ALL, AclOperation.WRITE),
    ],
)
def test_an_allow_acl_implies_other_operations_and_a_deny_acl_does_not(
    granted: AclOperation, implied: AclOperation
) -> None:
    assert allowed(authorizer_of(acl(1, operation=granted)), operation=implied)
    denied = authorizer_of(acl(1, operation=AclOperation.ALL), acl(2, operation=granted, allow=False))
    assert allowed(denied, operation=implied) == (granted is not AclOperation.ALL)


def test_hosts_match_exactly_or_by_range() -> None:
    assert allowed(authorizer_of(acl(1, host=HOST)))
    assert not allowed(authorizer_of(acl(1, host="10.0.0.8")))
    assert allowed(authorizer_of(acl(1, host="10.0.0.0/24")))
    assert not allowed(authorizer_of(acl(1, host="10.0.1.0/24")))


@pytest.mark.parametrize(
    ("host", "pattern", "inside"),
    [
        ("10.0.0.0", "10.0.0.0/30", True),
        ("10.0.0.3", "10.0.0.1/30", True),
        ("10.0.0.4", "10.0.0.0/30", False),
        ("2001:db8::5", "2001:db8::/32", True),
        ("10.0.0.1", "2001:db8::/32", False),
        ("10.0.0.1", "10.0.0.0/99", False),
        ("host", "10.0.0.0/8", False),
        ("10.0.0.1", "10.0.0.1", False),
    ],
)
def test_a_range_of_addresses(host: str, pattern: str, inside: bool) -> None:
    assert is_in_range(host, pattern) == inside


def test_super_users_may_do_everything_even_before_acls_are_loaded() -> None:
    authorizer = StandardAuthorizer(AuthorizerConfig.of({"super.users": "User:admin; User:root"}))
    assert allowed(authorizer, principal="User:root")
    with pytest.raises(AuthorizerNotReadyError):
        allowed(authorizer)


def test_a_resource_without_acls_is_denied_unless_everyone_is_allowed() -> None:
    assert not allowed(authorizer_of(acl(1, "other")))
    everyone = authorizer_of(acl(1, "other"), allow_everyone_if_no_acl_found=True)
    assert allowed(everyone)
    assert not allowed(everyone, "other", AclOperation.WRITE), "it has one"


def test_the_error_says_what_is_wrong() -> None:
    with pytest.raises(UsageError, match="names 'admin', which is no principal"):
        AuthorizerConfig.of({"super.users": "admin"})
    assert AuthorizerConfig.of({"allow.everyone.if.no.acl.found": " TRUE "}).allow_everyone_if_no_acl_found
    action = Action(operation=3, resource_type=2, resource_name="foo", pattern_type=PatternType.PREFIXED)
    with pytest.raises(UsageError, match="as a pattern"):
        authorizer_of().authorize(ALICE, HOST, action)


def test_acl_changes_apply_to_later_decisions() -> None:
    authorizer = StandardAuthorizer()
    made = cluster(acl(1))
    made.introduce(authorizer)
    made.change(acl(2, "bar"), r.RemoveAccessControlEntryRecord(id=uuid_of(1)))
    assert allowed(authorizer, "bar")
    assert not allowed(authorizer)
    assert len(authorizer.acls.by_id) == 1


names = st.sampled_from(["", "a", "ab", "abc", "b", "*"])
some_acls = st.dictionaries(
    st.integers(0, 9).map(uuid_of),
    st.builds(
        StandardAcl,
        resource_type=st.integers(2, 3),
        resource_name=names,
        pattern_type=st.sampled_from([3, 4]),
        principal=st.just(ALICE),
        host=st.just("*"),
        operation=st.integers(2, 4),
        permission_type=st.integers(2, 3),
    ),
)


@given(some_acls, st.lists(st.integers(0, 9).map(uuid_of)), st.integers(2, 3), names)
def test_the_cache_finds_what_a_search_of_all_finds(
    acls: dict[Uuid, StandardAcl], removed: list[Uuid], resource: int, name: str
) -> None:
    cache = AclCache.of(acls)
    for acl_id in removed:
        cache = cache.without(acl_id)
    expected = [
        acl
        for acl_id, acl in acls.items()
        if acl_id not in removed
        and acl.resource_type == resource
        and (acl.resource_name in (name, "*") if acl.pattern_type == 3 else name.startswith(acl.resource_name))
    ]
    found = [acl for at_place in cache.matching(resource, name) for acl in at_place.values()]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
