"""Records of topics merged when somebody looks: the same as each replayed at once, faults included."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import local_changes_to_json
from kraftlake.delta.topics.record_values import values_of
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.runtime.errors import ReplayError
from tests.delta.topics.object_change import as_objects, is_of_all, topics_are_changed_alone
from tests.histories import uuid_of
from tests.topic_records import TOPIC_ID, TOPICS, changes, partition_records

BROKERS = [*range(10), 4999]
HERE = MetadataProvenance(offset=1000, epoch=1)
RECORDS = st.lists(
    st.one_of(
        TOPICS,
        partition_records(),
        partition_records(),
        changes(),
        changes(),
        changes(),
        st.builds(r.RemoveTopicRecord, topic_id=TOPIC_ID),
        st.builds(r.ClearElrRecord, topic_name=st.sampled_from(["", "a", "zz"])),
        st.just(r.ConfigRecord(resource_type=2, resource_name="a", name="flush.ms", value="v")),
    ),
    max_size=40,
)


@pytest.fixture(params=["alone", "all"])
def many(request):
    """Whether the topics that records name are changed alone, or the whole image is."""
    with topics_are_changed_alone(alone=request.param == "alone"):
        yield request.param


def one_by_one(image, records):
    """The delta of the records, each of them made a change of objects at once, and the faults that were met."""
    faults = []
    with as_objects():
        delta = MetadataDelta(image)
        for offset, record in enumerate(records):
            try:
                delta.replay(record, offset)
            except ReplayError as error:
                faults.append((error.offset, str(error)))
    return delta, faults


def kept(image, records, looks, values=()):
    """The same, but that nobody looks before a record whose offset is in `looks`; of those in `values`, the values."""
    delta, faults = MetadataDelta(image), []

    def until_done(what):
        while True:
            try:
                return what()
            except ReplayError as error:
                if error.offset is None:
                    raise
                faults.append((error.offset, str(error)))
                if error.offset == offset and type(records[offset]) is r.RemoveTopicRecord:
                    return None

    for offset, record in enumerate(records):
        if offset in values and all(map(delta.replay_value, values_of([record])[0] or [b""])):
            continue
        until_done(lambda record=record, offset=offset: delta.keep(record, offset))
        if offset in looks and delta.topics_delta is not None:
            until_done(delta.topics_delta.merge)
    offset = -1
    if records and delta.topics_delta is not None:
        until_done(lambda: delta.topics_delta.local_changes(1))
    return delta, faults


def outcome(delta):
    topics = delta.topics_delta
    try:
        image = image_to_json(delta.apply(HERE))
    except ReplayError as error:
        return str(error)
    if topics is None:
        return image
    local = [
        local_changes_to_json(topics.local_changes(broker), broker=broker, from_offset=0, to_offset=0)
        for broker in BROKERS
    ]
    elections = {
        topic_id: (changed.unclean_elections, changed.elr_elections, set(changed.partition_changes))
        for topic_id, changed in topics.changed_topics.items()
    }
    return image, local, elections, topics.deleted_topic_ids, topics.created_topic_ids


def base_of(records, packed):
    delta, _ = one_by_one(MetadataImage.EMPTY, records)
    try:
        image = delta.apply(HERE)
    except ReplayError:
        return MetadataImage.EMPTY
    return MetadataImage(provenance=HERE, topics=TopicsImage.with_rows(image.topics.rows())) if packed else image


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the same for every example
@given(
    before=RECORDS, records=RECORDS, looks=st.sets(st.integers(0, 39), max_size=4), packed=st.booleans(),
    values=st.sets(st.integers(0, 39)),
)  # fmt: skip
def test_records_that_wait_for_a_look_make_what_one_by_one_makes(many, before, records, looks, *, packed, values):
    base = base_of(before, packed)
    form = image_to_json(base)
    expected, faults = one_by_one(base, records)
    delta, met = kept(base, records, looks, values)
    assert met == faults
    assert outcome(delta) == outcome(expected)
    assert image_to_json(base) == form, "an image never changes"


WHOLE = [
    *[r.TopicRecord(name=f"t{topic}", topic_id=uuid_of(1000 + topic)) for topic in range(1, 5)],
    *[
        r.PartitionRecord(
            topic_id=uuid_of(1000 + topic), partition_id=number, replicas=(number, 5, 9), isr=(number, 5),
            leader=number, leader_epoch=1, partition_epoch=1, directories=(uuid_of(300),) * 3,
        )
        for topic in range(1, 5)
        for number in range(4)
    ],
]  # fmt: skip
"""All topics and partitions that changes name."""


@given(records=st.lists(changes(), min_size=1, max_size=4))
def test_a_few_changes_of_a_packed_image_make_what_objects_make(records):
    base = base_of(WHOLE, packed=True)
    assert base != MetadataImage.EMPTY
    expected, faults = one_by_one(base, records)
    delta, _ = one_by_one(base, [])
    topics = delta.get_or_create_topics_delta()
    for record in records:
        topics.keep(record)
    met = 0
    while True:
        try:
            seen = [topics.apply(), *[topics.local_changes(broker) for broker in BROKERS]]
            break
        except ReplayError:
            met += 1
            assert met <= len(faults)
    assert met == len(faults)
    expected_topics = expected.get_or_create_topics_delta()
    assert seen == [expected_topics.apply(), *[expected_topics.local_changes(broker) for broker in BROKERS]]
    assert outcome(delta) == outcome(expected)


def partition(number, *replicas, **fields):
    return r.PartitionRecord(
        partition_id=number, topic_id=uuid_of(5), replicas=replicas, isr=replicas, leader=replicas[0], leader_epoch=0,
        partition_epoch=0, **fields,
    )  # fmt: skip


def change(number, **fields):
    return r.PartitionChangeRecord(partition_id=number, topic_id=uuid_of(5), **fields)


MANY = [r.TopicRecord(name="foo", topic_id=uuid_of(5)), *[partition(number, 1, 2) for number in range(30)]]


def test_many_records_are_merged_in_one_pass_without_objects():
    delta = TopicsDelta(TopicsImage.EMPTY)
    for record in [*MANY, change(3, leader=2), change(29, directories=(uuid_of(201), uuid_of(202)))]:
        delta.keep(record)
    delta.merge()
    assert is_of_all(delta)
    image = delta.apply()
    assert image.get_partition(uuid_of(5), 3).leader == 2
    assert image.get_partition(uuid_of(5), 29).directories == (uuid_of(201), uuid_of(202))
    assert delta.replay_remove_topic(r.RemoveTopicRecord(topic_id=uuid_of(5))) == "foo"
    assert is_of_all(delta)
    assert delta.apply() == TopicsImage.EMPTY


def test_values_of_a_created_topic_need_no_records():
    base = base_of(WHOLE, packed=True)
    delta = MetadataDelta(base, of_log=True)
    values, error = values_of(MANY)
    assert error is None
    assert all(map(delta.replay_value, values))
    assert (
        delta.apply(HERE).topics.get_topic("foo").partitions == as_image(base, MANY).topics.get_topic("foo").partitions
    )
    taken, _ = values_of(
        [r.TopicRecord(name="t1", topic_id=uuid_of(6)), r.TopicRecord(name="t7", topic_id=uuid_of(1001))]
    )
    before = delta.apply(HERE)
    assert not any(map(delta.replay_value, taken))
    assert delta.apply(HERE) == before


def as_image(base, records):
    return one_by_one(base, records)[0].apply(HERE)


def test_several_changes_of_a_partition_are_one_local_change():
    """Directories that an earlier one of them has written count, and the state before the first of them."""
    base = base_of([*MANY, partition(3, 1, 2, directories=(uuid_of(201), uuid_of(202)))], packed=True).topics
    records = [change(3, directories=(uuid_of(201), uuid_of(202))), change(3, leader=2), change(3, isr=(2,))]
    few, objects = TopicsDelta(base), TopicsDelta(base)
    for record in records:
        few.keep(record)
        objects.keep(record)
    assert set(objects.changed_topics) == {uuid_of(5)}
    assert list(few.local_changes(1).directory_ids.values()) == [uuid_of(201)]
    assert few.local_changes(2).elected_leaders
    assert [few.local_changes(broker) for broker in BROKERS] == [objects.local_changes(b) for b in BROKERS]
    assert few.apply() == objects.apply()


def test_a_fault_names_its_offset_and_leaves_the_others_as_they_are(many):
    delta = MetadataDelta(MetadataImage.EMPTY)
    for offset, record in enumerate([*MANY, change(30, leader=1), change(4, leader=2), change(31, leader=1)]):
        delta.keep(record, offset)
    with pytest.raises(ReplayError, match=r"^offset 31, PARTITION_CHANGE_RECORD: .*no partition 30") as first:
        delta.apply(HERE)
    with pytest.raises(ReplayError, match=r"^offset 33, PARTITION_CHANGE_RECORD: .*no partition 31") as second:
        delta.apply(HERE)
    assert (first.value.offset, second.value.offset) == (31, 33)
    assert delta.apply(HERE).topics.get_partition(uuid_of(5), 4).leader == 2


def test_records_replayed_together_end_at_the_fault(many):
    delta = MetadataDelta(MetadataImage.EMPTY)
    with pytest.raises(ReplayError, match=r"^offset 131, ") as fault:
        delta.replay_all([*MANY, change(30, leader=1), change(4, leader=2)], 100)
    assert fault.value.offset == 131


@pytest.mark.parametrize("fields", [{"leader": 2**31}, {"isr": (2**40,)}, {"leader_recovery_state": 300}])
def test_numbers_that_no_record_can_hold_are_refused(many, fields):
    delta = TopicsDelta(TopicsImage.EMPTY)
    for record in [*MANY, change(0, **fields), change(1, leader=2)]:
        delta.keep(record)
    with pytest.raises(ReplayError, match="PartitionChangeRecord"):
        delta.merge()
    topic = delta.changed_topic(uuid_of(5))
    assert [topic.partition(number).partition_epoch for number in (0, 1)] == [0, 1]


_MERGED = """
import sys
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.uuid import Uuid

delta = TopicsDelta(TopicsImage.EMPTY)
for number in range(1, 2000):
    delta.keep(TopicRecord(name=str(number), topic_id=Uuid(number.to_bytes(16, "big"))))
assert delta.apply().topic_count == 1999
assert len(delta.changed_topics) == 1999
assert not delta.local_changes(1).deletes
print("numpy" in sys.modules)
"""


def test_records_are_merged_without_numpy() -> None:
    done = subprocess.run([sys.executable, "-c", _MERGED], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False"]
