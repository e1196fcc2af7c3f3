"""Topics images as Arrow columns and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta import TopicsDelta
from kraftlake.image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.replay import topics_from_arrow, topics_to_arrow
from tests.histories import histories


def images(records):
    """The image that the topics of a history are, held as objects, packed, and packed with something beside it."""
    delta = TopicsDelta(TopicsImage.EMPTY)
    for record in records:
        if isinstance(record.message, r.TopicRecord):
            delta.replay_topic(record.message)
        elif isinstance(record.message, r.PartitionRecord):
            delta.replay_partition(record.message)
        elif isinstance(record.message, r.PartitionChangeRecord):
            delta.replay_partition_change(record.message)
        elif isinstance(record.message, r.RemoveTopicRecord):
            delta.replay_remove_topic(record.message)
    image = delta.apply()
    packed = TopicsImage.with_rows(image.rows())
    yield image
    yield packed
    for topic in image.topics_by_id().values():
        for number, partition in topic.partitions.items():
            change = r.PartitionChangeRecord(
                topic_id=topic.id, partition_id=number, leader=-1, isr=(), adding_replicas=partition.replicas[:1]
            )
            changed = TopicsDelta(packed)
            changed.replay_partition_change(change)
            yield changed.apply()
            return


@given(histories(min_steps=10))
def test_topics_are_the_same_after_they_were_columns(records):
    for image in images(records):
        again = topics_from_arrow(topics_to_arrow(image))
        assert again == image
        assert image == again
        assert (again.topic_count, again.partition_count) == (image.topic_count, image.partition_count)


@given(histories(min_steps=10), st.booleans())
def test_numpy_columns_say_what_the_partitions_say(records, through_arrow):
    for image in images(records):
        columns = (topics_from_arrow(topics_to_arrow(image)) if through_arrow else image).columns()
        ids, rare = columns.partition_ids.tolist(), columns.is_rare.tolist()
        assert len(ids) == image.partition_count
        for number, name in enumerate(columns.topic_names):
            topic = image.get_topic(name)
            assert columns.topic_ids[number].tobytes() == topic.id
            places = range(columns.starts[number], columns.starts[number + 1])
            assert [ids[at] for at in places] == sorted(topic.partitions)
            for at in places:
                state = topic.partitions[ids[at]]
                tail = (columns.leader[at], columns.leader_epoch[at], columns.partition_epoch[at])
                assert tail == (state.leader, state.leader_epoch, state.partition_epoch)
                assert columns.leader_recovery_state[at] == state.leader_recovery_state
                counts = columns.replica_count[at], columns.isr_count[at]
                if rare[at]:
                    assert counts == (-1, -1)
                    continue
                assert counts == (len(state.replicas), len(state.isr))
                assert tuple(columns.replicas[at, : counts[0]]) == state.replicas
                assert tuple(columns.isr[at, : counts[1]]) == state.isr
                of_replicas = columns.directories[at, : counts[0]].tolist()
                assert tuple(columns.directory_ids[place] for place in of_replicas) == state.directories


def test_nobody_writes_into_an_image_through_its_columns():
    topics = TopicsImage.EMPTY.columns()
    for array in (topics.leader, topics.replicas, topics.topic_ids, topics.partition_ids, topics.is_rare):
        assert not array.flags.writeable


def test_columns_of_something_else_are_refused():
    with pytest.raises(ValueError, match="not the columns of a topics image"):
        topics_from_arrow(pa.record_batch({"names": [1]}))
    batch = topics_to_arrow(TopicsImage.EMPTY)
    with pytest.raises(ValueError, match="not the columns of a topics image"):
        topics_from_arrow(batch.slice(0, 0))
    assert topics_from_arrow(batch) is TopicsImage.EMPTY
