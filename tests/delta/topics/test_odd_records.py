"""Odd and wrong records make of rows what they make of objects: images, local changes, skipped records, errors."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.topics.local_replica_changes import local_changes_to_json
from kraftlake.delta.topics.topics_delta import TOPIC_RECORDS, TopicsDelta
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.runtime.errors import CorruptDataError, ReplayError, UnknownRecordError
from tests.delta.topics.object_change import ObjectTopicsDelta, topics_are_changed_alone
from tests.delta.topics.odd_records import MESSAGES, odd_logs
from tests.replay.loader.test_bulk import load, outcome
from tests.replay.log.test_partition_store import described, replay_of


@given(log=odd_logs(), cut=st.integers(0, 20))
def test_in_bulk_they_do_what_they_do_one_by_one(log: list[RecordBatch], cut: int) -> None:
    last = log[-1].last_offset
    for way in ({"bulk": True}, {"rows": True}):
        assert outcome(log, last, lenient=True, **way) == outcome(log, last, lenient=True)
        assert outcome(log, last, **way) == outcome(log, last)
    base = load(log[:cut], last, lenient=True, bulk=True).take_image()
    expected = outcome(log[cut:], last, lenient=True, image=base)
    assert outcome(log[cut:], last, lenient=True, bulk=True, image=base) == expected
    with topics_are_changed_alone():
        assert outcome(log[cut:], last, lenient=True, rows=True, image=base) == expected


def snapshot_of(image: TopicsImage, messages: list[Message], kind: type[Any]) -> list[object]:
    """The errors, image and local changes of records of a snapshot that is loaded over an image."""
    delta, found = kind(image), list[object]()
    for message in messages:
        try:
            delta.keep(message)
            delta.merge()
        except ReplayError as error:
            found.append(str(error))
    delta.finish_snapshot()
    try:
        found.append(image_to_json(MetadataImage(topics=delta.apply())))
    except ReplayError as error:
        found.append(str(error))
    changes = [delta.local_changes(broker) for broker in range(6)]
    return [*found, *(local_changes_to_json(some, broker=1, from_offset=0, to_offset=0) for some in changes)]


@given(log=odd_logs(), messages=st.lists(MESSAGES, max_size=30))
def test_a_snapshot_over_an_image_does_too(log: list[RecordBatch], messages: list[Message]) -> None:
    image = load(log, log[-1].last_offset, lenient=True).take_image().topics
    some = [message for message in messages if type(message) in TOPIC_RECORDS]
    expected = snapshot_of(image, some, ObjectTopicsDelta)
    assert snapshot_of(image, some, TopicsDelta) == expected
    with topics_are_changed_alone():
        assert snapshot_of(image, some, TopicsDelta) == expected


def changes_of(log: list[RecordBatch], *, objects: bool, lenient: bool) -> list[object]:
    """The changes of partitions by delta, what is left out, and the error at the end.

    Names are left out: where an id comes again with another name, objects say the first one.
    """
    replay, found = replay_of(objects=objects, lenient=lenient), list[object]()
    try:
        for chunk in replay.take_parts(log):
            ends = chunk.boundaries.offsets.tolist()
            found += [(row[0], ends[row[1]], *row[3:]) for row in described(chunk.partitions)]
            found += [(ends[row[1]], *row[3:]) for row in described(chunk.partitions.by_delta())]
            ids = chunk.partitions.names.ids.to_pylist()
            found += sorted((ends[delta], ids[topic]) for delta, topic in chunk.partitions.created.tolist())
            found += sorted((ends[delta], ids[topic]) for delta, topic, _ in chunk.partitions.removed.tolist())
    except (ReplayError, CorruptDataError, UnknownRecordError) as error:
        found.append(str(error))
    return [*found, replay.skipped, replay.store.image()[0] if lenient else None]


@given(log=odd_logs(), lenient=st.booleans())
def test_their_changes_are_those_that_objects_make(log: list[RecordBatch], lenient: bool) -> None:
    assert changes_of(log, objects=False, lenient=lenient) == changes_of(log, objects=True, lenient=lenient)
