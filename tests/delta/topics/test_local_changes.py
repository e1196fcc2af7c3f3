"""What a delta means to one broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import (
    LocalReplicaChanges,
    PartitionInfo,
    TopicIdPartition,
    TopicPartition,
    local_changes_to_json,
)
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from tests.histories import BROKER_IDS, MIGRATING, histories, uuid_of
from tests.image.sample_images import REPLAYABLE, expected, one_delta

HERE = MetadataProvenance(offset=9, epoch=1)
FOO = uuid_of(5)
LOCAL = [
    pytest.param(sample, numbers, wanted, id=f"{sample}-{numbers}")
    for sample in REPLAYABLE
    for numbers, wanted in sorted(expected(sample, r"local-(\d+)-(\d+)-b(\d+)").items())
]


def test_there_are_local_changes_to_compare_with():
    assert len(LOCAL) == 55


@pytest.mark.parametrize(("sample", "numbers", "wanted"), LOCAL)
def test_the_local_changes_of_a_real_log_are_kafkas(sample, numbers, wanted):
    first, last, broker = numbers
    topics = one_delta(sample, first, last).topics_delta
    changes = None if topics is None else topics.local_changes(broker)
    form = local_changes_to_json(changes, broker=broker, from_offset=first, to_offset=last)
    assert json.loads(json.dumps(form)) == wanted


def delta_of(base, *messages):
    delta = MetadataDelta(base)
    for message in messages:
        delta.replay(message)
    return delta


def image_of(*messages):
    return delta_of(MetadataImage.EMPTY, *messages).apply(HERE)


TOPIC = r.TopicRecord(name="foo", topic_id=FOO)
PARTITION = r.PartitionRecord(
    partition_id=0, topic_id=FOO, replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=0, partition_epoch=0,
    directories=(uuid_of(201), uuid_of(202)),
)  # fmt: skip
BASE = image_of(TOPIC, PARTITION)
FOO_0 = TopicPartition("foo", 0)


def change(**fields):
    return r.PartitionChangeRecord(partition_id=0, topic_id=FOO, **fields)


def local(broker, *messages, base=BASE):
    return delta_of(base, *messages).topics_delta.local_changes(broker)


def test_a_new_partition_makes_a_leader_and_followers():
    leader = local(1, TOPIC, PARTITION, base=MetadataImage.EMPTY)
    info = PartitionInfo(FOO, BASE.topics.get_partition(FOO, 0))
    directories = {TopicIdPartition(FOO, FOO_0): uuid_of(201)}
    assert leader == LocalReplicaChanges(
        elected_leaders={FOO_0: info}, leaders={FOO_0: info}, topic_ids={"foo": FOO}, directory_ids=directories
    )
    assert local(2, TOPIC, PARTITION, base=MetadataImage.EMPTY).followers == {FOO_0: info}
    assert local(3, TOPIC, PARTITION, base=MetadataImage.EMPTY).is_empty()


def test_a_shrunk_isr_is_a_change_of_the_leader_without_an_election():
    changes = local(1, change(isr=(1,)))
    assert set(changes.leaders) == {FOO_0}
    assert changes.elected_leaders == {}
    assert changes.directory_ids == {}


def test_a_partition_without_a_leader_makes_followers():
    assert set(local(1, change(leader=-1)).followers) == {FOO_0}


def test_a_replica_that_is_taken_away_is_deleted():
    moved = change(replicas=(2, 3), directories=(uuid_of(202), uuid_of(203)))
    assert local(1, moved).deletes == {FOO_0}
    assert set(local(3, moved).followers) == {FOO_0}


def test_a_broker_that_is_new_to_an_old_partition_gets_no_directory_as_in_kafka():
    moved = change(replicas=(2, 3), directories=(uuid_of(202), uuid_of(203)))
    assert local(3, moved).directory_ids == {}


def test_a_deleted_topic_is_deleted_even_when_its_name_returns():
    again = r.TopicRecord(name="foo", topic_id=uuid_of(6))
    changes = local(1, r.RemoveTopicRecord(topic_id=FOO), again, attrs.evolve(PARTITION, topic_id=uuid_of(6)))
    assert changes.deletes == {FOO_0}
    assert set(changes.leaders) == {FOO_0}
    assert changes.topic_ids == {"foo": uuid_of(6)}


def test_directories_written_again_count_though_they_are_the_same():
    assert local(1, change(directories=PARTITION.directories)).directory_ids == {
        TopicIdPartition(FOO, FOO_0): uuid_of(201)
    }
    assert set(local(1, PARTITION).directory_ids) == {TopicIdPartition(FOO, FOO_0)}
    assert local(1, PARTITION).leaders == {}


def test_directories_that_were_never_recorded_do_not_count():
    base = image_of(TOPIC, attrs.evolve(PARTITION, directories=()))
    assert local(1, change(directories=(MIGRATING, MIGRATING)), base=base).directory_ids == {}
    assert local(1, attrs.evolve(PARTITION, directories=()), base=base).directory_ids == {}
    known = change(directories=(MIGRATING, uuid_of(202)))
    assert local(1, known, base=base).directory_ids == {TopicIdPartition(FOO, FOO_0): MIGRATING}


def test_a_replica_that_moved_in_the_list_has_another_directory():
    assert local(1, change(replicas=(2, 1))).directory_ids == {TopicIdPartition(FOO, FOO_0): uuid_of(202)}


def test_that_directories_were_rewritten_is_forgotten_with_the_delta():
    rewritten = delta_of(BASE, change(directories=PARTITION.directories)).apply(HERE)
    assert local(1, change(isr=(1,)), base=rewritten).directory_ids == {}


def test_a_topics_delta_may_mean_nothing_to_a_broker():
    form = local_changes_to_json(local(1, change(), change()), broker=1, from_offset=3, to_offset=5)
    assert form["hasTopicsDelta"]
    assert local(7, change()).is_empty()


def test_lists_in_the_json_are_sorted():
    topics = [r.TopicRecord(name=name, topic_id=uuid_of(10 + i)) for i, name in enumerate("cab")]
    parts = [attrs.evolve(PARTITION, topic_id=t.topic_id, partition_id=number) for t in topics for number in (10, 9, 0)]
    base = image_of(*topics, *parts)
    gone = [r.RemoveTopicRecord(topic_id=t.topic_id) for t in topics]
    form = local_changes_to_json(local(2, *gone, base=base), broker=2, from_offset=0, to_offset=1)
    assert form["deletes"] == sorted(form["deletes"])
    assert len(form["deletes"]) == 9
    created = local(2, *topics, *parts, base=MetadataImage.EMPTY)
    form = local_changes_to_json(created, broker=2, from_offset=0, to_offset=1)
    assert [list(form[key]) for key in ("topicIds", "directoryIds")] == [["a", "b", "c"], sorted(form["directoryIds"])]


class Box:
    """An id as an object of its own: equal to itself only, as references are."""

    def __init__(self, value: Uuid) -> None:
        self.value = value


THE_MIGRATING = Box(MIGRATING)


def boxes(directories, replicas):
    """Kafka's arrays: fresh objects, or its one constant where all are migrating."""
    if all((box.value if isinstance(box, Box) else box) == MIGRATING for box in directories):
        return [THE_MIGRATING] * replicas
    return [box if isinstance(box, Box) else Box(box) for box in directories]


class References:
    """The replicas and directory objects that Kafka would hold, by (topic id, partition)."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[Uuid, int], tuple[tuple[int, ...], list[Box]]] = {}

    def replay(self, message) -> None:
        if isinstance(message, r.RemoveTopicRecord):
            self.partitions = {k: v for k, v in self.partitions.items() if k[0] != message.topic_id}
        if isinstance(message, r.PartitionRecord):
            key = message.topic_id, message.partition_id
            self.partitions[key] = message.replicas, boxes(message.directories, len(message.replicas))
        if isinstance(message, r.PartitionChangeRecord):
            key = message.topic_id, message.partition_id
            replicas, directories = self.partitions[key]
            replicas = replicas if message.replicas is None else message.replicas
            given = directories if message.directories is None else message.directories
            self.partitions[key] = replicas, boxes(given, len(replicas))

    def directory_ids(self, before: References, broker: int) -> Iterator[tuple[Uuid, int, Uuid]]:
        for (topic_id, number), (replicas, directories) in self.partitions.items():
            if broker not in replicas:
                continue
            box = directories[replicas.index(broker)]
            old_replicas, old_directories = before.partitions.get((topic_id, number), (None, None))
            is_new = old_replicas is None
            if is_new or (broker in old_replicas and old_directories[old_replicas.index(broker)] is not box):
                yield topic_id, number, box.value


@given(histories(topics_only=True), st.floats(0, 1))
def test_local_changes_are_what_the_two_images_and_kafkas_references_say(history, where):
    messages = [record.message for record in history]
    cut = int(len(messages) * where)
    references, now = References(), References()
    for message in messages[:cut]:
        references.replay(message)
    now.partitions = dict(references.partitions)
    for message in messages[cut:]:
        now.replay(message)
    base = image_of(*messages[:cut])
    delta = delta_of(base, *messages[cut:])
    assume(delta.topics_delta is not None)
    image = delta.apply(HERE)
    for broker in BROKER_IDS:
        changes = delta.topics_delta.local_changes(broker)
        assert (changes.deletes, changes.elected_leaders, changes.leaders, changes.followers) == _compared(
            base, image, broker
        )
        got = {(key.topic_id, key.topic_partition.partition, id_) for key, id_ in changes.directory_ids.items()}
        assert got == set(now.directory_ids(references, broker))
        infos = {tp.topic: info.topic_id for tp, info in (changes.leaders | changes.followers).items()}
        assert changes.topic_ids == infos


def _compared(base, image, broker):
    """Deletes, elected leaders, leaders and followers by comparing two images alone."""
    deletes, elected, leaders, followers = set(), {}, {}, {}
    for topic_id, topic in base.topics.topics_by_id().items():
        for number, old in topic.partitions.items():
            new = image.topics.get_partition(topic_id, number)
            if broker in old.replicas and (new is None or broker not in new.replicas):
                deletes.add(TopicPartition(topic.name, number))
    for topic_id, topic in image.topics.topics_by_id().items():
        for number, new in topic.partitions.items():
            old = base.topics.get_partition(topic_id, number)
            if broker in new.replicas and (old is None or old.partition_epoch != new.partition_epoch):
                info, key = PartitionInfo(topic_id, new), TopicPartition(topic.name, number)
                (leaders if new.leader == broker else followers)[key] = info
                if new.leader == broker and (old is None or old.leader_epoch != new.leader_epoch):
                    elected[key] = info
    return deletes, elected, leaders, followers
