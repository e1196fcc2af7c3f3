from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.api import Source
from kraftlake.diagnosis.access.answers import access_of
from kraftlake.diagnosis.access.question import Question
from kraftlake.publisher.authorizer import AuthorizerConfig, StandardAuthorizer
from kraftlake.records import metadata_records as r
from tests.diagnosis.test_thing_changes import source_of
from tests.publisher.test_authorizer import acl
from tests.replay import made_logs as log

READ = ("read", "topic", "foo")


def removed(number: int) -> r.RemoveAccessControlEntryRecord:
    return r.RemoveAccessControlEntryRecord(id=log.uuid_of(number))


def answers(source: Source, principal: str = "User:alice", **options: Any) -> list[tuple[int | None, bool]]:
    history = source.access_changes(principal, *READ, **options)
    return [(None if one.change is None else one.change.since, one.access.allowed) for one in history.changes]


def test_a_change_of_the_answer_names_the_record_and_the_others_are_left_out() -> None:
    source = source_of(
        log.log_of(
            1, [log.metadata_version()], [acl(1)], [acl(2, "*")], [acl(3, "bar", allow=False)],
            [acl(4, "f", pattern=4, allow=False)], [removed(1)], [removed(4)],  # type: ignore[arg-type]
        )
    )  # fmt: skip
    assert answers(source) == [(None, False), (2, True), (5, False), (7, True)]
    assert answers(source, at=4) == [(None, False), (2, True)]
    given_by = source.access_changes("User:alice", *READ).changes[-1].to_json()
    assert {name: given_by[name] for name in ("offset", "type", "thing", "after", "allowed")} == {
        "offset": 7, "type": "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", "thing": f"acl/{log.uuid_of(4)}", "after": None,
        "allowed": True,
    }  # fmt: skip
    assert answers(source, host="10.0.0.1", super_users=["User:alice"]) == [(None, True)]


def test_what_a_transaction_changes_is_one_change_at_its_end() -> None:
    batches = log.log_of(
        1, [log.metadata_version()], [log.begin(), acl(1), acl(2, allow=False)], [removed(2)], [log.end()],
        [log.begin(), removed(1)], [log.abort()],
    )  # fmt: skip
    source = source_of(batches)
    assert answers(source) == [(None, False), (6, True)]
    assert source.access_changes("User:alice", *READ).changes[1].to_json()["effectiveOffset"] == 6


def test_a_log_that_begins_with_a_snapshot_begins_with_its_acls() -> None:
    batches = log.log_of(1, [log.metadata_version()], [acl(1)], [log.topic(1)], [removed(1)])
    history = source_of(batches, 3, 3).access_changes("User:alice", *READ)
    assert [one.access.allowed for one in history.changes] == [True, False]
    assert history.begin == 2


def test_everyone_is_allowed_until_the_resource_has_an_acl() -> None:
    source = source_of(log.log_of(1, [log.metadata_version()], [acl(1, principal="User:bob")], [removed(1)]))
    assert answers(source, allow_everyone=True) == [(None, True), (2, False), (3, True)]


numbers = st.integers(1, 5)
steps = st.one_of(
    st.builds(
        acl,
        numbers,
        st.sampled_from(["foo", "fo", "*", "bar"]),
        allow=st.booleans(),
        pattern=st.sampled_from([3, 4]),
        principal=st.sampled_from(["User:alice", "User:*", "User:bob"]),
        host=st.sampled_from(["*", "10.0.0.1", "10.0.0.0/8"]),
        operation=st.integers(2, 4),
    ),
    st.builds(removed, numbers),
)


@given(st.lists(steps, max_size=12), st.booleans())
def test_the_changes_are_those_of_the_answer_at_each_offset(found: list[Any], everyone: bool) -> None:
    ids: set[Any] = set()
    taken = []
    for step in found:  # as controllers write: no ACL is there twice, none is removed that is not there
        is_there = step.id in ids
        if isinstance(step, r.RemoveAccessControlEntryRecord) == is_there:
            taken.append(step)
            ids ^= {step.id}
    batches = log.log_of(1, [log.metadata_version()], *([step] for step in taken))
    config = AuthorizerConfig(allow_everyone_if_no_acl_found=everyone)
    question = Question.parse(*READ)
    expected: list[Any] = []
    for at in range(1, len(taken) + 2):
        acls = log.reference_image(batches, at).acls.acls
        answer = access_of(StandardAuthorizer.of(acls.items(), config), "User:alice", question).answer
        if not expected or expected[-1] != answer:
            expected.append(answer)
    history = source_of(batches).access_changes("User:alice", *READ, allow_everyone=everyone)
    assert [one.access.answer for one in history.changes] == expected
