"""The throttle of partitions that move back: set before them, and taken away at the end, also what an end has left."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kraftlake.api import Source
from kraftlake.diagnosis.undo.planning import plan_undo
from kraftlake.diagnosis.undo.rehearsal import rehearse
from kraftlake.diagnosis.undo.step import Action, Step
from kraftlake.kafka_files.sniffing.source_kind import SourceKind
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from tests.diagnosis.trial.clusters import broker, topic_id
from tests.replay import made_logs as log

RATE = "follower.replication.throttled.rate"


def partition(*replicas: int) -> r.PartitionRecord:
    return r.PartitionRecord(
        partition_id=0, topic_id=topic_id(1), replicas=replicas, isr=replicas, leader=replicas[0], leader_epoch=0,
        partition_epoch=0,
    )  # fmt: skip


def config(kind: int, name: str, key: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def plan_of(*since: Message, kinds: Sequence[str] = (), before: Sequence[Message] = ()) -> list[Step]:
    """The steps back to a topic on the brokers 1 and 2, from what some records have made of it."""
    begin = [r.FeatureLevelRecord(name="metadata.version", feature_level=25)]
    begin += [attrs.evolve(broker(id_, fenced=id_ == 4), log_dirs=()) for id_ in (1, 2, 3, 4)]
    begin += [r.TopicRecord(name="t", topic_id=topic_id(1)), partition(1, 2), *before]
    batches = log.log_of(1, begin, [*since])
    source = Source(log.trimmed(batches, 0), SourceKind.DIRECTORY, "made", None)  # type: ignore[arg-type]
    then, now = batches[1].last_offset, batches[2].last_offset
    plan = plan_undo(source, then, now, kinds=kinds, assignments=True, throttle=7)
    assert rehearse(plan, source.image(now), source.image(then)).left.is_empty() or kinds
    return list(plan.steps)


def summaries(steps: Sequence[Step]) -> list[tuple[str, str, dict[str, tuple[object, object]]]]:
    return [
        (step.action.value, step.path, {one.field.removesuffix("s"): (one.before, one.after) for one in step.changes})
        for step in steps
    ]


def test_a_throttle_is_set_before_partitions_move_and_goes_at_the_end() -> None:
    rates = {f"{side}.replication.throttled.rate": (None, "7") for side in ("follower", "leader")}
    replicas = {
        "follower.replication.throttled.replica": (None, "0:1"),
        "leader.replication.throttled.replica": (None, "0:3,0:2"),
    }
    throttled = [(f"config/BROKER/{id_}", rates) for id_ in (1, 2, 3)] + [("config/TOPIC/t", replicas)]
    assert summaries(plan_of(partition(3, 2), config(2, "t", "retention.ms", "5"))) == [
        *(("alter-configs", path, changes) for path, changes in throttled[:3]),
        ("alter-configs", "config/TOPIC/t", {"retention.m": ("5", None)}),
        ("alter-configs", *throttled[3]),
        ("reassign", "topic/t", {"0": ([3, 2], [1, 2])}),
        *(
            ("alter-configs", path, {name: (after, before) for name, (before, after) in changes.items()})
            for path, changes in throttled
        ),
    ]


def test_replicas_that_go_or_change_their_order_need_no_throttle() -> None:
    assert [step.action for step in plan_of(partition(2, 1, 3))] == [Action.REASSIGN]


def test_a_throttle_that_somebody_has_set_stays() -> None:
    steps = plan_of(
        partition(3, 2),
        before=[config(4, "3", RATE, "9"), config(2, "t", "leader.replication.throttled.replicas", "*")],
    )
    of_3 = {one.field for step in steps if step.path == "config/BROKER/3" for one in step.changes}
    of_t = {one.field for step in steps if step.path == "config/TOPIC/t" for one in step.changes}
    assert (of_3, of_t) == ({"leader.replication.throttled.rate"}, {"follower.replication.throttled.replicas"})


def test_what_a_killed_application_has_left_goes_whatever_is_selected() -> None:
    left = [
        config(4, "2", RATE, "7"),
        config(4, "3", RATE, "8"),
        config(2, "t", "leader.replication.throttled.replicas", "0:1"),
    ]
    for kinds in (["topic"], []):
        steps = plan_of(*left, kinds=kinds)
        assert all(step.ends_throttle for step in steps)
        paths = ["config/BROKER/2", "config/BROKER/3", "config/TOPIC/t"]
        assert [step.path for step in steps] == [path for path in paths if not kinds or path != "config/BROKER/3"]
