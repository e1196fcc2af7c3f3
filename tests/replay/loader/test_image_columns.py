"""Topics images as Arrow columns and back."""

from __future__ import annotations

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.partition_row import DIRECTORIES, RECOVERY, SHAPE
from kraftlake.records import metadata_records as r
from kraftlake.replay.loader.image_columns import topics_from_arrow, topics_to_arrow
from tests.histories import histories, uuid_of


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
    with pytest.raises(ValueError, match="not the columns of an image"):
        topics_from_arrow(pa.record_batch({"names": [1]}))
    batch = topics_to_arrow(TopicsImage.EMPTY)
    with pytest.raises(ValueError, match="not the columns of an image"):
        topics_from_arrow(batch.slice(0, 0))
    assert topics_from_arrow(batch) is TopicsImage.EMPTY


PLAIN, RARE = 0, 1
"""The rows of a partition with three lists, and of one whose lists lie in the heap."""


def packed_topics() -> PackedTopics:
    """A topic with a partition of each kind, and one whose partition is number 5."""
    topics, directory = [uuid_of(1), uuid_of(2)], uuid_of(9)
    delta = TopicsDelta(TopicsImage.EMPTY)
    for name, topic_id in zip("ab", topics, strict=True):
        delta.keep(r.TopicRecord(name=name, topic_id=topic_id))
    for topic_id, number, adding in ((topics[0], 0, ()), (topics[0], 1, (2,)), (topics[1], 5, ())):
        delta.keep(
            r.PartitionRecord(
                topic_id=topic_id, partition_id=number, replicas=(1, 2), isr=(1,), leader=1, adding_replicas=adding,
                directories=(directory, directory),
            )
        )  # fmt: skip
    return delta.apply().rows().merged()


def with_row(row: int, column: int, value: int) -> dict[str, object]:
    rows = packed_topics().rows.copy()
    rows[row, column] = value
    return {"rows": rows}


def with_heap(place: int, value: int) -> dict[str, object]:
    heap = np.array(packed_topics().heap)
    heap[place] = value
    return {"heap": heap}


def column(name: str, values: object) -> pa.RecordBatch:
    """The columns of the topics above with another value of one of them."""
    batch = topics_to_arrow(TopicsImage.with_rows(packed_topics()))
    at = batch.schema.get_field_index(name)
    return batch.set_column(at, batch.schema.field(at), pa.array([values], batch.schema.field(at).type))


@pytest.mark.parametrize(
    "changes",
    [
        with_row(PLAIN, SHAPE, 4),
        with_row(PLAIN, SHAPE, 4 << 8),
        with_row(PLAIN, SHAPE, -2),
        with_row(PLAIN, DIRECTORIES, 2),
        with_row(PLAIN, DIRECTORIES, -1),
        with_row(PLAIN, RECOVERY, 2),
        with_row(RARE, 0, -1),
        with_row(RARE, 0, 1 << 30),
        with_heap(0, -1),
        with_heap(1, (1 << 31) - 1),
        with_heap(2, 1),
        with_heap(10, 2),
    ],
)
def test_rows_with_a_place_that_is_not_there_are_refused(changes):
    packed = packed_topics()
    assert topics_from_arrow(topics_to_arrow(TopicsImage.with_rows(packed))).partition_count == 3
    broken = TopicsImage.with_rows(attrs.evolve(packed, **changes))
    with pytest.raises(ValueError, match=r"^(a partition|the lists of a partition) "):
        topics_from_arrow(topics_to_arrow(broken))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("starts", [0, 3, 2]),
        ("starts", [0, 2, 4]),
        ("starts", [1, 2, 3]),
        ("ids", bytes(16)),
        ("directories", bytes(33)),
        ("sparse_topics", [2]),
        ("sparse_topics", [0]),
        ("sparse_ids", [[-1]]),
        ("sparse_ids", [[None]]),
        ("names", ["a", None]),
        ("names", None),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(name, values):
    with pytest.raises(ValueError, match=r"topic|missing"):
        topics_from_arrow(column(name, values))
