"""Plans on the log of a real cluster, taken by a controller in memory: what comes out is what was."""

from __future__ import annotations

import pytest

import kraftlake
from kraftlake.api import Source
from kraftlake.diagnosis.things import Thing
from kraftlake.diagnosis.undo.order import in_order
from kraftlake.diagnosis.undo.planning import plan_undo
from kraftlake.diagnosis.undo.rehearsal import rehearse
from kraftlake.diagnosis.undo.step import THROTTLES, Action, StepClass
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import NoSuchThingError, OffsetError
from tests.at_least_one import at_least_one
from tests.cli.running import DIRECTORY
from tests.replay import made_logs as log

SOURCE = kraftlake.open(DIRECTORY)
_VERSION_MOVED = {260: 100, 1000: 260, 2000: 1000}
"""Moments between which metadata.version rose, which Kafka takes back only where nothing is lost."""


@pytest.mark.parametrize(
    ("then", "now"), [(100, 260), (260, 1000), (1000, 2000), (1500, 2786), (2000, 4639), (3000, 4639), (4000, 4639)]
)
def test_what_a_controller_makes_of_a_plan_is_the_past_state(then: int, now: int) -> None:
    plan = plan_undo(SOURCE, then, now, assignments=True)
    found = rehearse(plan, SOURCE.image(now), SOURCE.image(then))
    unreachable = {step.path for step in plan.steps if step.action is Action.NONE}
    if _VERSION_MOVED.get(now) == then:
        unreachable.add("feature/metadata.version")
    assert {one.path for one in found.left.changes} <= unreachable
    refused = {one.step.path for one in found.answers if one.answer is not None and one.answer.is_failure}
    assert refused <= unreachable
    assert len(plan.steps) > len(unreachable)


def test_each_value_has_the_record_that_undid_it() -> None:
    plan = plan_undo(SOURCE, 2000, 4639, assignments=True)
    for step in at_least_one(plan.steps):
        for change in step.changes if not THROTTLES & {one.field for one in step.changes} else ():
            proof = change.undone_by
            assert proof is not None, step
            assert 2000 < proof.offset <= 4639, step
            (record,) = SOURCE.records(proof.offset, proof.offset)
            assert (record.type, record.timestamp) == (proof.type, proof.timestamp)
    (step,) = (step for step in plan.steps if step.path == "topic/t-10-k3m")
    (record,) = {change.undone_by for change in step.changes}
    assert record is not None
    assert (record.offset, record.type) == (4233, "REMOVE_TOPIC_RECORD")


def test_the_record_of_a_config_is_the_one_that_blame_names() -> None:
    plan = plan_undo(SOURCE, 1000, 2000, kinds=["config"])
    for step in at_least_one(plan.steps):
        for change in step.changes:
            if change.before is not None and change.undone_by is not None:
                kind, name = step.subject["type"], step.subject["name"]
                blamed = SOURCE.blame_all(Thing.config(kind, name, change.field).text, 2000)
                (record,) = [one for one in blamed if one.before == change.after and one.offset > 1000]
                assert record.offset == change.undone_by.offset


def test_a_topic_is_undone_with_its_configs_and_acls_alone() -> None:
    plan = plan_undo(SOURCE, 4000, 4639, topics=["t-10-k3m"])
    assert [step.action for step in plan.steps] == [Action.CREATE_TOPIC, Action.ALTER_CONFIGS]
    assert plan.steps[0].step_class is StepClass.PARTIAL
    assert "new id and without its records" in plan.steps[0].note
    assert plan.steps[0].after("replicas") is not None
    assert {*plan_undo(SOURCE, 4000, 4639, kinds=["acl"]).counts()} == {StepClass.SAFE, StepClass.ACCESS}


def credential(user: str, key: bytes, iterations: int = 4096) -> r.UserScramCredentialRecord:
    return r.UserScramCredentialRecord(
        name=user, mechanism=1, salt=b"salt", stored_key=key, server_key=key, iterations=iterations
    )


def test_the_record_of_a_credential_is_of_no_aborted_transaction() -> None:
    batches = log.log_of(
        1, [log.metadata_version(), credential("alice", b"old"), credential("carol", b"old")],
        [credential("alice", b"new"), r.RemoveUserScramCredentialRecord(name="carol", mechanism=1)],
        [credential("bob", b"new")],
        [log.begin(), credential("alice", b"aborted"), credential("bob", b"aborted"), log.abort()],
    )  # fmt: skip
    steps = plan_undo(Source(log.trimmed(batches, 0), SourceKind.DIRECTORY, "made", None), 3, 10).steps  # type: ignore[arg-type]
    proofs = {step.path: (step.action, step.changes[0].undone_by) for step in steps}
    assert {path: (action, proof and proof.offset) for path, (action, proof) in proofs.items()} == {
        "scram/alice/SCRAM-SHA-256": (Action.NONE, 4),
        "scram/bob/SCRAM-SHA-256": (Action.DELETE_SCRAM, 6),
        "scram/carol/SCRAM-SHA-256": (Action.NONE, 5),
    }
    assert "old" not in repr(steps)


def test_the_same_state_needs_no_steps() -> None:
    assert plan_undo(SOURCE, 4639, 4639).steps == ()


def test_a_later_moment_and_a_topic_that_never_was_are_errors() -> None:
    with pytest.raises(OffsetError, match="a plan goes back"):
        plan_undo(SOURCE, 4000, 3000)
    with pytest.raises(NoSuchThingError, match="There is no topic nowhere"):
        plan_undo(SOURCE, 3000, 4000, topics=["nowhere"])
    assert plan_undo(SOURCE, 3000, 4000, topics=["nowhere-*"]).steps == ()


def test_no_state_between_is_wider_than_both_ends() -> None:
    steps = plan_undo(SOURCE, 2000, 4639).steps
    order = [(step.action, step.subject["acl"]["permissionType"]) for step in steps if "acl" in step.subject]
    right = [(Action.CREATE_ACL, 2), (Action.CREATE_ACL, 3), (Action.DELETE_ACL, 3), (Action.DELETE_ACL, 2)]
    taken = list(dict.fromkeys(order))
    assert taken == [one for one in right if one in taken]
    assert len(taken) > 2
    assert in_order(reversed(steps)) == list(steps)
