"""Topics images as Arrow columns and back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given

from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.replay.loader.image_columns import topics_from_arrow, topics_to_arrow
from tests.histories import histories


def images(records):
    """The image that the topics of a history are, held as objects, packed, and packed with something beside it."""
    delta = TopicsDelta(TopicsImage.EMPTY)
    for record in records:
        if isinstance(record.message, r.TopicRecord | r.PartitionRecord | r.PartitionChangeRecord):
            delta.keep(record.message)
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
            changed.keep(change)
            yield changed.apply()
            return


@given(histories(min_steps=10))
def test_topics_are_the_same_after_they_were_columns(records):
    for image in images(records):
        again = topics_from_arrow(topics_to_arrow(image))
        assert again == image
        assert image == again
        assert (again.topic_count, again.partition_count) == (image.topic_count, image.partition_count)


def test_columns_of_something_else_are_refused():
    with pytest.raises(ValueError, match="not the columns of a topics image"):
        topics_from_arrow(pa.record_batch({"names": [1]}))
    batch = topics_to_arrow(TopicsImage.EMPTY)
    with pytest.raises(ValueError, match="not the columns of a topics image"):
        topics_from_arrow(batch.slice(0, 0))
    assert topics_from_arrow(batch) is TopicsImage.EMPTY
