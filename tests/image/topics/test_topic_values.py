"""Packed topics written in bulk are, byte for byte, what the objects write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics.topic_values import topic_values, topics_by_name
from kraftlake.image.writer_options import CollectedLosses, ImageWriterOptions
from kraftlake.records.metadata_records import PartitionRecord, TopicRecord
from kraftlake.records.metadata_version import ALL, MINIMUM_OF_KAFKA_4, from_feature_level
from kraftlake.records.serde import ApiMessageAndVersion, encode_value
from tests.histories import histories, uuid_of

LEVELS = st.integers(MINIMUM_OF_KAFKA_4.level, len(ALL)).map(from_feature_level)


def image_of(records: list[ApiMessageAndVersion]) -> MetadataImage:
    delta = MetadataDelta(MetadataImage.EMPTY)
    delta.replay_all(record.message for record in records)
    return delta.apply(MetadataProvenance.EMPTY)


def written(image: MetadataImage, level, elr: bool) -> tuple[dict[str, list[bytes]], tuple[str, ...]]:
    losses = CollectedLosses()
    packed = image.topics.rows()
    options = ImageWriterOptions(metadata_version=level, elr_enabled=elr, loss_handler=losses)
    order = topics_by_name(packed.table)
    values = topic_values(packed, options, order)
    topics = {}
    for number, name in enumerate(packed.table.names[topic] for topic in order.tolist()):
        at, end = values.starts[number], values.starts[number + 1]
        topics[name] = []
        for size in values.sizes[values.firsts[number] : values.firsts[number + 1]].tolist():
            topics[name].append(values.data[at : at + size].tobytes())
            at += size
        assert at == end
    return topics, losses.losses


def written_by_objects(image: MetadataImage, level, elr: bool) -> tuple[dict[str, list[bytes]], tuple[str, ...]]:
    losses = CollectedLosses()
    options = ImageWriterOptions(metadata_version=level, elr_enabled=elr, loss_handler=losses)
    topics = {
        name: [encode_value(record.message, record.version) for record in topic.write(options)]
        for name, topic in image.topics.topics_by_name().items()
    }
    return topics, losses.losses


@given(histories(topics_only=True, max_steps=60), LEVELS, st.booleans())
def test_any_topics_are_written_as_their_objects_are_at_any_version(records, level, elr) -> None:
    image = image_of(records)
    topics, lost = written(image, level, elr)
    expected, losses = written_by_objects(image, level, elr)
    assert topics == expected
    assert set(lost) == set(losses)


@pytest.mark.parametrize("replicas", [1, 3, 4, 130, 5000])
def test_lists_of_any_length_and_partitions_with_gaps_are_written(replicas: int) -> None:
    brokers = tuple(range(replicas))
    records = [ApiMessageAndVersion(TopicRecord(name="foo", topic_id=uuid_of(7)), 0)]
    records += [
        ApiMessageAndVersion(
            PartitionRecord(
                partition_id=partition, topic_id=uuid_of(7), replicas=brokers, isr=brokers[:2],
                adding_replicas=brokers[1:], removing_replicas=brokers[:1], leader=-1, leader_epoch=2**31 - 1,
                partition_epoch=-5, leader_recovery_state=1, directories=(uuid_of(9),) * replicas,
                eligible_leader_replicas=brokers, last_known_elr=brokers[:1],
            ),
            2,
        )
        for partition in (3, 1, 900)
    ]  # fmt: skip
    image = image_of(records)
    level = ALL[-1]
    assert written(image, level, True) == written_by_objects(image, level, True)
    assert len(written(image, level, True)[0]["foo"]) == 4


@pytest.mark.parametrize("length", [1, 125, 126, 127, 128, 249, 16_383, 16_384])
def test_topics_with_names_of_any_length_are_written(length: int) -> None:
    names = ["a" * length, "é" * (length // 2 + 1)]
    image = image_of(
        [ApiMessageAndVersion(TopicRecord(name=name, topic_id=uuid_of(at)), 0) for at, name in enumerate(names, 1)]
    )
    topics, _ = written(image, ALL[-1], True)
    assert topics == {
        name: [encode_value(TopicRecord(name=name, topic_id=uuid_of(at)), 0)] for at, name in enumerate(names, 1)
    }
