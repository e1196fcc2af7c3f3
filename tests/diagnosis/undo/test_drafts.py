"""Steps of topics whose replicas do not fit one request."""

from __future__ import annotations

import attrs

from kraftlake.diagnosis.drift.comparison import compare
from kraftlake.diagnosis.undo.drafts import drafts_of
from kraftlake.diagnosis.undo.order import in_order
from kraftlake.diagnosis.undo.plan import Plan, State
from kraftlake.diagnosis.undo.planning import sides_of
from kraftlake.diagnosis.undo.rehearsal import rehearse
from kraftlake.diagnosis.undo.step import Action, StepClass
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from kraftlake.records.redaction import REDACTED
from tests.diagnosis.trial.clusters import broker, directory, image_of, topic_id


def cluster(*replicas: tuple[int, ...], brokers=(1, 2, 3)) -> MetadataImage:
    """A cluster of active brokers, with a topic of these replicas."""
    topic = [] if not replicas else [r.TopicRecord(name="t", topic_id=topic_id(1))]
    partitions = [
        r.PartitionRecord(
            partition_id=number, topic_id=topic_id(1), replicas=lists, isr=lists, leader=lists[0], leader_epoch=0,
            partition_epoch=0, directories=tuple(directory(id_) for id_ in lists),
        )
        for number, lists in enumerate(replicas)
    ]  # fmt: skip
    version = r.FeatureLevelRecord(name="metadata.version", feature_level=25)
    return image_of(version, *(broker(id_, fenced=False) for id_ in brokers), *topic, *partitions)


def undone(present: MetadataImage, past: MetadataImage) -> tuple[list[Action], list[str]]:
    """The actions of a plan, and what would still differ after them."""
    sides = sides_of(present, past)
    found = compare(sides.now, sides.then).changes
    steps = in_order(draft.step for one in found for draft in drafts_of(sides, one, assignments=True))
    state = State(offset=0, timestamp=None)
    plan = Plan(cluster_id=None, now=state, then=state, steps=tuple(steps), assignments=True)
    left = rehearse(plan, present, past).left
    return [step.action for step in steps], [one.change.describe() for one in left.changes]


def test_new_partitions_get_their_brokers_where_they_fit_the_others() -> None:
    assert undone(cluster((1, 2)), cluster((1, 2), (2, 3))) == ([Action.ADD_PARTITIONS], [])


def test_partitions_of_other_numbers_of_replicas_are_placed_and_moved() -> None:
    actions = [Action.ADD_PARTITIONS, Action.REASSIGN]
    assert undone(cluster((3,)), cluster((3, 2), (3, 2), (1, 3))) == (actions, [])
    assert undone(cluster(), cluster((1,), (1, 2))) == ([Action.CREATE_TOPIC, Action.REASSIGN], [])


def test_a_partition_stays_where_a_broker_that_it_had_is_gone() -> None:
    present, past = cluster((1,), (2,), brokers=(1, 2)), cluster((2,), (3,))
    assert undone(present, past)[0] == [Action.REASSIGN]
    assert undone(cluster(brokers=(1, 2)), past)[0] == [Action.CREATE_TOPIC, Action.REASSIGN]


def test_a_secret_that_the_source_lacks_does_not_come_back() -> None:
    config = {"resource_type": 4, "resource_name": "1", "name": "ssl.keystore.password"}
    past = attrs.evolve(cluster(), configs=image_of(r.ConfigRecord(**config, value=REDACTED)).configs)
    sides = sides_of(cluster(), past)
    (change,) = compare(sides.now, sides.then).changes
    (draft,) = drafts_of(sides, change)
    assert (draft.step.action, draft.step.step_class) == (Action.NONE, StepClass.IMPOSSIBLE)
    assert "lacks the value" in draft.step.note
