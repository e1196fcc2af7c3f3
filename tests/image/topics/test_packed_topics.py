"""The packed image against a plain dict of objects, under random operations; old images never change."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.topics import topics_image
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.uuid import Uuid
from tests.histories import uuid_of

NAMES = ("a", "b", "c", "ü", "e.f")
BROKERS = st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True).map(tuple)
FEW = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)
DIRECTORIES = st.sampled_from([Uuid.ZERO, uuid_of(1), uuid_of(2), uuid_of(300), Uuid(b"\xff" * 16)])
RECOVERY = st.sampled_from([0, 0, 0, 1])


def content(image: TopicsImage) -> int:
    """A hash of everything that the image says."""
    return hash(
        frozenset((t.name, t.id, p, state) for t in image.topics_by_id().values() for p, state in t.partitions.items())
    )


class Topics(RuleBasedStateMachine):
    """`model`: topic id → (name, partition id → state)."""

    limit = 20_000

    @initialize(limit=st.sampled_from([0, 0, 2, 7, 20_000]))
    def begin(self, limit):
        self.before, topics_image.PACK_FROM = topics_image.PACK_FROM, limit
        self.image = TopicsImage.EMPTY
        self.delta = TopicsDelta(self.image)
        self.model: dict[Uuid, tuple[str, dict[int, PartitionRegistration]]] = {}
        self.old: list[tuple[TopicsImage, int]] = []
        self.next_id = 1000

    def teardown(self):
        if hasattr(self, "before"):
            topics_image.PACK_FROM = self.before

    @rule(name=st.sampled_from(NAMES), count=st.integers(0, 3), sparse=st.sampled_from([0, 0, 0, 2]), data=st.data())
    def create(self, name, count, sparse, data):
        if name in {known for known, _ in self.model.values()}:
            return
        self.next_id += 1
        topic_id = uuid_of(self.next_id)
        self.delta.keep(TopicRecord(name=name, topic_id=topic_id))
        self.model[topic_id] = name, {}
        for partition in range(count):
            self.write(topic_id, partition + sparse, data)

    def write(self, topic_id, partition, data):
        replicas = data.draw(BROKERS)
        record = PartitionRecord(
            topic_id=topic_id,
            partition_id=partition,
            replicas=replicas,
            isr=data.draw(FEW),
            removing_replicas=data.draw(st.one_of(st.just(()), FEW)),
            adding_replicas=data.draw(st.one_of(st.just(()), FEW)),
            leader=data.draw(st.integers(-1, 9)),
            leader_recovery_state=data.draw(RECOVERY),
            leader_epoch=data.draw(st.integers(0, 3)),
            partition_epoch=data.draw(st.integers(0, 3)),
            directories=data.draw(st.one_of(st.just(()), st.tuples(*[DIRECTORIES] * len(replicas)))),
            eligible_leader_replicas=data.draw(st.one_of(st.none(), FEW)),
            last_known_elr=data.draw(st.one_of(st.none(), FEW)),
        )
        self.delta.keep(record)
        self.model[topic_id][1][partition] = PartitionRegistration.from_record(record)

    @precondition(lambda self: getattr(self, "model", None))
    @rule(data=st.data())
    def add_or_rewrite(self, data):
        topic_id = data.draw(st.sampled_from(sorted(self.model)))
        self.write(topic_id, data.draw(st.integers(0, 4)), data)

    @precondition(lambda self: any(p for _, p in getattr(self, "model", {}).values()))
    @rule(data=st.data())
    def change(self, data):
        topic_id = data.draw(st.sampled_from(sorted(t for t, (_, p) in self.model.items() if p)))
        partition = data.draw(st.sampled_from(sorted(self.model[topic_id][1])))
        replicas = data.draw(st.one_of(st.none(), BROKERS))
        old = self.model[topic_id][1][partition]
        count = len(old.replicas if replicas is None else replicas)
        must = count != len(old.replicas) and not old.all_migrating
        given_directories = st.tuples(*[DIRECTORIES] * count)
        record = PartitionChangeRecord(
            topic_id=topic_id,
            partition_id=partition,
            isr=data.draw(st.one_of(st.none(), FEW)),
            leader=data.draw(st.sampled_from([-2, -1, 0, 5])),
            replicas=replicas,
            removing_replicas=data.draw(st.one_of(st.none(), FEW)),
            adding_replicas=data.draw(st.one_of(st.none(), FEW)),
            leader_recovery_state=data.draw(st.sampled_from([-1, -1, 0, 1])),
            directories=data.draw(given_directories if must else st.one_of(st.none(), st.just(()), given_directories)),
            eligible_leader_replicas=data.draw(st.one_of(st.none(), FEW)),
            last_known_elr=data.draw(st.one_of(st.none(), FEW)),
        )
        self.delta.keep(record)
        self.model[topic_id][1][partition] = old.merge(record)

    @precondition(lambda self: getattr(self, "model", None))
    @rule(data=st.data())
    def delete(self, data):
        topic_id = data.draw(st.sampled_from(sorted(self.model)))
        assert self.delta.replay_remove_topic(RemoveTopicRecord(topic_id=topic_id)) == self.model.pop(topic_id)[0]

    @rule(all_of_them=st.booleans(), data=st.data())
    def clear_elr(self, all_of_them, data):
        names = sorted(name for name, _ in self.model.values())
        if not names and not all_of_them:
            return
        name = "" if all_of_them else data.draw(st.sampled_from(names))
        self.delta.keep(ClearElrRecord(topic_name=name))
        for topic, partitions in self.model.values():
            if name in ("", topic):
                for number, old in partitions.items():
                    if old.elr or old.last_known_elr:
                        empty = PartitionChangeRecord(eligible_leader_replicas=(), last_known_elr=())
                        partitions[number] = old.merge(empty)

    @rule(look=st.booleans())
    def commit(self, look):
        if look:
            list(self.image.topics_by_name().items())
        self.old.append((self.image, content(self.image)))
        after = self.delta.apply()
        assert TopicsDelta(after).apply() is after
        differing = {
            name
            for name in {*self.image.topics_by_name(), *after.topics_by_name()}
            if self.image.get_topic(name) != after.get_topic(name)
        }
        assert differing <= set(self.image.may_differ(after))
        assert (self.image == after) == (not differing)
        self.image, self.delta = after, TopicsDelta(after)
        self.check()

    def check(self):
        expected = {
            topic_id: TopicImage(name=name, id=topic_id, partitions=MappingProxyType(dict(partitions)))
            for topic_id, (name, partitions) in self.model.items()
        }
        image = self.image
        assert image.topic_count == len(image.topics_by_id()) == len(image.topics_by_name()) == len(expected)
        assert dict(image.topics_by_id()) == expected
        assert dict(image.topics_by_name()) == {topic.name: topic for topic in expected.values()}
        assert image.partition_count == sum(len(topic.partitions) for topic in expected.values())
        for topic_id, topic in expected.items():
            assert image.get_topic(topic.name) == topic
            assert set(image.get_topic_by_id(topic_id).partitions) == set(topic.partitions)
            for number in range(6):
                assert image.get_partition(topic_id, number) == topic.partitions.get(number)
        assert {n for n in NAMES if image.get_topic(n)} == {topic.name for topic in expected.values()}
        assert TopicsImage.with_rows(image.rows()) == image
        assert TopicsImage.with_rows(image.rows().merged()) == image

    @invariant()
    def old_images_are_as_they_were(self):
        for image, before in getattr(self, "old", ())[-3:]:
            assert content(image) == before


TestTopics = Topics.TestCase


def test_a_name_that_two_topics_have_is_refused_when_they_are_packed():
    from kraftlake.image.topics import packed_topics as table

    topics = [("a", uuid_of(1), {}), ("a", uuid_of(2), {})]
    with pytest.raises(AssertionError, match="different names"):
        _ = table.pack(table.EMPTY, (), {}, topics).table.by_name
