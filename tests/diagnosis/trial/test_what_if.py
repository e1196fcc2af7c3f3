"""What a what-if answers: its steps, what it shows of each, what comes back, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kraftlake
from kraftlake.diagnosis.trial.standing import Standing
from kraftlake.diagnosis.trial.steps import Step, StepKind
from kraftlake.diagnosis.trial.what_if import WhatIf, what_if
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import NoSuchThingError, OffsetError, UsageError
from tests.cli.running import DIRECTORY
from tests.diagnosis.trial.clusters import BROKERS, broker, clusters, config, directory, features, image_of, topic_id


def partition(number: int, *replicas: int, **fields: Any) -> r.PartitionRecord:
    made = {"isr": replicas, "leader": replicas[0], "directories": tuple(map(directory, replicas))} | fields
    return r.PartitionRecord(partition_id=number, topic_id=topic_id(0), replicas=replicas, **made)


def cluster(*partitions: r.PartitionRecord, elr: bool = False) -> MetadataImage:
    """Brokers 1 and 2 in rack a, 3 in rack b, and a topic of these partitions that asks for two replicas in sync."""
    return image_of(
        *features(elr=elr), broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b"),
        config("min.insync.replicas", "2", "foo"), r.TopicRecord(name="foo", topic_id=topic_id(0)), *partitions,
    )  # fmt: skip


def asked(image: MetadataImage, *steps: str, **each: bool) -> WhatIf:
    return what_if(image, [Step.parse(step) for step in steps], **each)


def test_the_answer_is_what_kafkas_controller_did_at_an_outage_of_the_sample() -> None:
    source = kraftlake.open(DIRECTORY)
    after = source.image(458)  # the end of the batch that fences broker 3; it begins with offset 403, after a no-op
    answer = source.what_if("lose-broker 3", at=401)
    assert after.cluster.brokers[3].fenced
    assert answer.image.topics == after.topics
    assert answer.after == Standing.of(after)
    assert answer.before == Standing.of(source.image(401))
    assert len(answer.after.offline) > len(answer.before.offline)


def test_the_json_form_is_as_others_rely_on_it() -> None:
    image = cluster(partition(0, 1, 2, 3), partition(1, 2), partition(2, 3, 1))
    form = asked(image, "lose-broker 2", each_broker=True).to_json()
    assert json.loads(json.dumps(form)) == form
    stage = {"offline": ["foo-1"], "underMinIsr": [], "recovering": [], "reassigning": [], "leaders": {"1": 1, "3": 1}}
    risk = {"rack": None, "leads": 1, "offline": [], "underMinIsr": ["foo-0", "foo-2"], "recovering": []}
    assert form == {
        "clusterId": None, "offset": image.offset, "epoch": 3, "timestamp": 1_700_000_000_000,
        "lost": {"brokers": [2], "racks": []},
        "offline": ["foo-1"], "underMinIsr": [],
        "leadersBefore": {"1": 1, "2": 1, "3": 1}, "leadersAfter": {"1": 1, "3": 1},
        "offlineBefore": [], "underMinIsrBefore": [],
        "steps": [
            {"step": "lose-broker", "brokers": [2], "racks": [], "partitions": [], "fenced": [2], "notes": [],
             "refused": {}, "stages": [{"stage": "lost", **stage}]},
        ],
        "returns": [{"brokers": [2], "online": ["foo-1"], "recovering": []}],
        "eachBroker": [
            {"brokers": [1], **risk}, {"brokers": [3], **risk},
        ],
        "eachRack": None,
    }  # fmt: skip


def test_steps_follow_each_other_and_each_is_shown() -> None:
    answer = asked(cluster(partition(0, 1, 2)), "lose-rack a", "restart 1", "catch-up", "restart 2", "catch-up")
    stages = [(one.step.kind.value, stage.name, stage.standing) for one in answer.steps for stage in one.stages]
    assert [(kind, name, standing.offline, dict(standing.leaders)) for kind, name, standing in stages] == [
        ("lose-rack", "lost", ("foo-0",), {}),
        ("restart", "back", ("foo-0",), {}),  # the last one in sync was 2
        ("catch-up", "caught up", ("foo-0",), {}),
        ("restart", "back", (), {2: 1}),
        ("catch-up", "caught up", (), {2: 1}),
    ]
    assert [standing.under_min_isr for *_, standing in stages] == [("foo-0",)] * 4 + [()]
    assert answer.returns == (), "all are back"


def test_a_restart_stops_the_broker_first() -> None:
    answer = asked(cluster(partition(0, 1, 2), partition(1, 1)), "restart 1")
    (step,) = answer.steps
    assert [(stage.name, stage.standing.offline) for stage in step.stages] == [("stopped", ("foo-1",)), ("back", ())]
    assert dict(answer.after.leaders) == {1: 1, 2: 1}
    assert answer.after.under_min_isr == ("foo-0",), "nobody has caught up"


def test_what_comes_back_is_listed_for_each_lost_broker_and_for_all() -> None:
    image = cluster(partition(0, 1), partition(1, 2), partition(2, 1, 2), elr=True)
    answer = asked(image, "lose-broker 2", "lose-broker 1")
    assert [(one.brokers, one.online, one.recovering) for one in answer.returns] == [
        ((1,), ("foo-0", "foo-2"), ("foo-0", "foo-2")),  # after a crash the last one may have lost records
        ((2,), ("foo-1",), ("foo-1",)),
        ((1, 2), ("foo-0", "foo-1", "foo-2"), ("foo-0", "foo-1", "foo-2")),
    ]


def test_a_broker_that_is_fenced_already_is_noted() -> None:
    answer = asked(cluster(partition(0, 1, 2, 3)), "lose-broker 1", "lose-rack a")
    assert [(one.fenced, one.notes) for one in answer.steps] == [
        ((1,), ()),
        ((2,), ("broker 1 is fenced already",)),
    ]


def test_what_the_controller_refuses_is_reported_and_the_rest_taken() -> None:
    moves = {("foo", 0): (3, 2), ("foo", 1): (9,), ("bar", 0): (1,)}
    answer = what_if(cluster(partition(0, 1, 2), partition(1, 1)), [Step(kind=StepKind.REASSIGN, moves=moves)])
    (step,) = answer.steps
    assert answer.refused
    assert step.refused == {
        "foo-1": "The assignment [9] can't be made: broker 9 is not registered.",
        "bar-0": "There is no partition bar-0.",
    }
    assert answer.after.reassigning == ("foo-0",)


@pytest.mark.parametrize(
    ("steps", "error", "words"),
    [
        (["lose-broker 4"], NoSuchThingError, "Broker 4 is not registered at offset 6; registered brokers: 1, 2 and 3"),
        (["restart 1,4"], NoSuchThingError, "Broker 4 is not registered"),
        (["lose-rack c"], NoSuchThingError, "No broker is in rack 'c' at offset 6; racks: a and b"),
        ([], UsageError, "Say what would happen"),
    ],
)
def test_what_is_not_there_is_an_error(steps: list[str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        asked(cluster(partition(0, 1, 2)), *steps)


def test_an_image_that_no_controller_can_decide_on_is_an_error() -> None:
    with pytest.raises(OffsetError, match=r"has no metadata\.version"):
        asked(image_of(broker(1)), "lose-broker 1")
    with pytest.raises(NoSuchThingError, match="No broker has a rack"):
        asked(image_of(*features(), broker(1)), each_rack=True)


def test_a_topic_may_lack_its_first_partition() -> None:
    image = cluster(partition(3, 1, 2), partition(5, 1))
    assert asked(image, "lose-broker 1", each_broker=True).after.offline == ("foo-5",)
    assert [risk.offline for risk in asked(image, each_broker=True).each_broker or ()] == [("foo-5",), (), ()]


def test_the_same_question_has_the_same_answer() -> None:
    image = kraftlake.open(DIRECTORY).image(4592)
    words = ("lose-rack rack-0", "restart 1", "catch-up", "restart 2")
    assert asked(image, *words, each_rack=True).to_json() == asked(image, *words, each_rack=True).to_json()


def test_names_are_sorted_and_an_empty_cluster_has_none() -> None:
    many = asked(cluster(*(partition(number, 1) for number in range(12))), "lose-broker 1")
    assert list(many.after.offline) == sorted(f"foo-{number}" for number in range(12))
    nothing = asked(image_of(*features(), broker(1)), "lose-broker 1", each_broker=True)
    assert (nothing.after.offline, nothing.after.leaders, nothing.each_broker) == ((), {}, ())


IDS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3).map(tuple)
STEPS = st.lists(
    st.one_of(
        st.builds(Step, kind=st.sampled_from([StepKind.LOSE_BROKER, StepKind.RESTART]), brokers=IDS),
        st.builds(Step, kind=st.just(StepKind.REASSIGN), moves=st.dictionaries(
            st.tuples(st.sampled_from(["t0", "t1", "t9"]), st.integers(0, 2)), IDS, min_size=1
        )),
        st.just(Step(kind=StepKind.CATCH_UP)),
    ),
    min_size=1, max_size=4,
)  # fmt: skip


@given(clusters(), STEPS)
def test_any_steps_have_an_answer_and_the_image_stays_as_it_was(image: MetadataImage, steps: list[Step]) -> None:
    before = image.to_json()
    answer = what_if(image, steps)
    assert image.to_json() == before
    assert (answer.before, answer.after) == (Standing.of(image), Standing.of(answer.image))
    lost = {id_ for one in answer.steps for id_ in one.fenced}
    for back in answer.returns:
        assert {*back.brokers} <= lost
        assert {*back.online} <= {*answer.after.offline}
