from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.diagnosis.access.answers import Effect, access_of, acls_behind, who_may
from kraftlake.diagnosis.access.host_regions import ANY_OTHER
from kraftlake.diagnosis.access.question import Question, compared_host
from kraftlake.image.acls_image import StandardAcl
from kraftlake.publisher.authorizer import AuthorizerConfig, StandardAuthorizer, is_in_range
from kraftlake.runtime.errors import UsageError
from tests.publisher.test_authorizer import acl
from tests.replay.made_logs import uuid_of

READ = Question.parse("read", "topic", "foo")


def authorizer_of(*records: object, **config: object) -> StandardAuthorizer:
    acls = [(record.id, StandardAcl.from_record(record)) for record in records]  # type: ignore[attr-defined]
    return StandardAuthorizer.of(acls, AuthorizerConfig(**config))  # type: ignore[arg-type]


def test_an_answer_names_the_acl_and_the_hosts_with_another_answer() -> None:
    authorizer = authorizer_of(
        acl(1), acl(2, "*", allow=False, host="10.0.0.0/8"), acl(3, host="10.0.0.7"), acl(4, principal="User:bob")
    )
    access = access_of(authorizer, "User:alice", READ)
    assert access.allowed
    assert access.decision.acl_id == uuid_of(1)
    assert [(one.region.pattern, one.decision.allowed) for one in access.exceptions] == [("10.0.0.0/8", False)]
    assert not access_of(authorizer, "User:alice", READ, "10.0.0.7").allowed


def test_the_reasons_say_what_each_acl_of_the_resource_does() -> None:
    authorizer = authorizer_of(
        acl(1), acl(2, "fo", allow=False, pattern=4, host="10.0.0.9"),  # type: ignore[arg-type]
        acl(3, "*", operation=4), acl(4, principal="User:bob"), acl(5, "bar"),  # type: ignore[arg-type]
    )  # fmt: skip
    behind = {one.acl_id: one.effect for one in acls_behind(authorizer, "User:alice", READ, "10.0.0.1")}
    assert behind == {
        uuid_of(1): Effect.ALLOWS, uuid_of(2): Effect.OTHER_HOST, uuid_of(3): Effect.OTHER_OPERATION,
        uuid_of(4): Effect.OTHER_PRINCIPAL,
    }  # fmt: skip


def test_all_that_may_are_listed_and_where_all_others_may_those_that_may_not() -> None:
    authorizer = authorizer_of(
        acl(1), acl(2, principal="User:bob", allow=False), acl(3, principal="User:eve", host="10.0.0.1"),
        super_users=frozenset({"User:root"}),
    )  # fmt: skip
    may = who_may(authorizer, READ)
    assert [(one.principal, one.allowed) for one in may] == [
        ("User:alice", True), ("User:eve", False), ("User:root", True),
    ]  # fmt: skip
    assert [one.region.pattern for one in may[1].exceptions] == ["10.0.0.1"]
    open_to_all = authorizer_of(acl(1, principal="User:*"), acl(2, principal="User:bob", allow=False))
    assert [(one.principal, one.allowed) for one in who_may(open_to_all, READ)] == [
        ("User:*", True), ("User:bob", False),
    ]  # fmt: skip
    assert who_may(authorizer_of(acl(1, "bar")), READ) == []
    everyone = authorizer_of(acl(1, "bar"), allow_everyone_if_no_acl_found=True)
    assert [one.principal for one in who_may(everyone, READ)] == ["User:*"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("raed", "topic", "a"), "'raed' is no operation: a topic has read, write,"),
        (("write", "group", "a"), "'write' is no operation on a group: a group has read, delete, describe,"),
        (("read", "topics", "a"), "'topics' is no type of resource; did you mean topic?"),
        (("read", "topic", ""), "Name the topic after `read topic`."),
        (("create", "cluster", "mine"), "'mine' is no name of the cluster: to authorizers it is kafka-cluster."),
    ],
)
def test_a_question_that_nobody_can_ask_is_an_error(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Question.parse(*words)


def test_an_address_is_compared_as_brokers_write_it() -> None:
    assert compared_host("2001:db8::5") == "2001:db8:0:0:0:0:0:5"
    assert compared_host("10.0.0.7") == "10.0.0.7"
    assert compared_host("db1") == "db1"


hosts = st.sampled_from(["*", "10.0.0.1", "10.0.0.2", "10.0.0.0/30", "10.0.0.0/8", "10.0.0.2/31", "2001:db8::/32"])
rules = st.lists(
    st.builds(
        StandardAcl,
        resource_type=st.just(2),
        resource_name=st.sampled_from(["foo", "fo", "*", "bar"]),
        pattern_type=st.sampled_from([3, 4]),
        principal=st.sampled_from(["User:alice", "User:*", "User:bob"]),
        host=hosts,
        operation=st.integers(2, 4),
        permission_type=st.sampled_from([2, 3]),
    ),
    max_size=7,
)
CLIENTS = ("10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.9.9.9", "2001:db8:0:0:0:0:0:9", "192.168.0.1", ANY_OTHER)


@given(rules, st.booleans())
def test_the_exceptions_say_what_is_answered_to_each_host(found: list[StandardAcl], everyone: bool) -> None:
    config = AuthorizerConfig(allow_everyone_if_no_acl_found=everyone)
    authorizer = StandardAuthorizer.of(((uuid_of(n + 1), one) for n, one in enumerate(found)), config)
    access = access_of(authorizer, "User:alice", READ)
    said = {}
    for host in CLIENTS:
        said[host] = access.allowed
        for one in access.exceptions:  # outer regions come before those within them
            if host and (one.region.pattern == host or is_in_range(host, one.region.pattern)):
                said[host] = one.decision.allowed
    assert said == {host: authorizer.authorize("User:alice", host, READ.action).allowed for host in CLIENTS}


@given(rules, st.booleans())
def test_who_may_is_what_each_principal_is_answered(found: list[StandardAcl], everyone: bool) -> None:
    config = AuthorizerConfig(super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=everyone)
    authorizer = StandardAuthorizer.of(((uuid_of(n + 1), one) for n, one in enumerate(found)), config)
    listed = {one.principal: one.answer for one in who_may(authorizer, READ)}
    for principal in ("User:alice", "User:bob", "User:root", "User:eve"):
        others = listed.get("User:*", (False,))
        assert listed.get(principal, others) == access_of(authorizer, principal, READ).answer
