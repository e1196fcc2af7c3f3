"""An image written as records and replayed is the same image."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.writer_options import CollectedLosses, ImageWriterOptions
from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_version import ALL, from_feature_level
from kraftlake.records.serde import decode_value, encode_value
from kraftlake.runtime.errors import UnwritableMetadataError
from tests.histories import histories, uuid_of
from tests.image.sample_images import REPLAYABLE, expected, images

HERE = MetadataProvenance(offset=9, epoch=1)


def replayed(records, base=MetadataImage.EMPTY, provenance=HERE):
    delta = MetadataDelta(base)
    for record in records:
        delta.replay(record.message)
    return delta.apply(provenance)


@pytest.mark.parametrize("sample", REPLAYABLE)
def test_an_image_of_a_real_log_survives_the_way_through_records_and_bytes(sample):
    written = 0
    for (offset,) in expected(sample, r"image-(\d+)"):
        image = images(sample)[offset]
        if image.features.metadata_version is None:
            continue
        records = [decode_value(encode_value(record.message, record.version)) for record in image.write()]
        assert replayed(records, provenance=image.provenance) == image
        written += 1
    assert written >= 10


@given(histories())
def test_an_image_survives_the_way_through_records_and_bytes(history):
    image = replayed(history)
    records = [decode_value(encode_value(record.message, record.version)) for record in image.write()]
    assert replayed(records) == image


@given(histories(), histories(first_id=5000))
def test_a_snapshot_replaces_any_other_image(history, other):
    image = replayed(history)
    delta = MetadataDelta(replayed(other))
    for record in image.write():
        delta.replay(record.message)
    delta.finish_snapshot()
    kept = delta.image.producer_ids if image.producer_ids.is_empty() else image.producer_ids
    assert delta.apply(HERE) == attrs.evolve(image, producer_ids=kept)


@given(histories())
def test_a_snapshot_of_the_image_itself_changes_nothing(history):
    image = replayed(history)
    delta = MetadataDelta(image)
    for record in image.write():
        delta.replay(record.message)
    delta.finish_snapshot()
    after = delta.apply(HERE)
    assert after == image
    assert after is image or image.configs.ignored  # of which a snapshot knows nothing


@given(histories(max_steps=15), st.randoms())
def test_equal_images_are_written_in_the_same_order(history, random):
    image = replayed(history)
    records = list(image.write())
    shuffled = records[1:]
    random.shuffle(shuffled)
    shuffled.sort(key=lambda record: not isinstance(record.message, r.TopicRecord))  # before their partitions
    again = replayed([records[0], *shuffled])
    assert again == image
    assert list(again.write()) == records


@given(histories(), st.sampled_from(ALL[6:]))
def test_what_is_lost_at_another_level_is_named_and_the_rest_stays(history, level):
    image = replayed(history)
    losses = CollectedLosses()
    options = ImageWriterOptions(metadata_version=level, elr_enabled=image.features.is_elr_enabled, loss_handler=losses)
    records = list(image.write(options))
    for record in records:
        encode_value(record.message, record.version)
    again = replayed(records)
    expected_image = attrs.evolve(image, features=attrs.evolve(image.features, metadata_version=level))
    assert (again == expected_image) == (not losses.losses)
    assert again.configs == image.configs
    if losses.losses:
        with pytest.raises(UnwritableMetadataError, match="The image holds"):
            list(image.write(attrs.evolve(options, loss_handler=image.writer_options().loss_handler)))


def at(level, *messages):
    return replayed(
        [
            decode_value(encode_value(r.FeatureLevelRecord(name="metadata.version", feature_level=level), 0)),
            *(attrs.make_class("Record", ["message"])(message) for message in messages),
        ]
    )


BROKER = r.RegisterBrokerRecord(broker_id=1, incarnation_id=uuid_of(9), broker_epoch=1, log_dirs=(uuid_of(201),))
TOPIC = r.TopicRecord(name="foo", topic_id=uuid_of(5))
PARTITION = r.PartitionRecord(
    partition_id=0, topic_id=uuid_of(5), replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
)


@pytest.mark.parametrize(
    ("level", "messages", "loss"),
    [
        (16, [BROKER], "the online log directories of one or more brokers"),
        (29, [attrs.evolve(BROKER, cordoned_log_dirs=())], "the cordoned log directories of one or more brokers"),
        (7, [attrs.evolve(BROKER, log_dirs=(), is_migrating_zk_broker=True)],
         "the migration state of one or more ZooKeeper brokers"),
        (14, [r.RegisterControllerRecord(controller_id=1)], "the registrations of controllers"),
        (16, [TOPIC, attrs.evolve(PARTITION, directories=(uuid_of(201),))],
         "the log directories of one or more replicas"),
        (33, [TOPIC, attrs.evolve(PARTITION, last_known_elr=(1,))],
         "the eligible leader replicas of one or more partitions"),
        (10, [r.UserScramCredentialRecord(name="a", mechanism=1)], "SCRAM credentials"),
        (13, [r.DelegationTokenRecord(owner="User:a", requester="User:a", token_id="t")], "delegation tokens"),
    ],
)  # fmt: skip
def test_each_kind_of_loss_has_its_words(level, messages, loss):
    image = at(level, *messages)
    with pytest.raises(UnwritableMetadataError, match=f"{loss}.*{from_feature_level(level)}"):
        list(image.write())
    losses = CollectedLosses()
    list(image.write(image.writer_options(loss_handler=losses)))
    assert losses.losses == (loss,)


def test_eligible_replicas_without_the_level_for_them_are_a_loss_though_the_feature_is_on():
    elr = r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    image = at(22, elr, TOPIC, attrs.evolve(PARTITION, eligible_leader_replicas=(1,)))
    with pytest.raises(UnwritableMetadataError, match="eligible leader replicas"):
        list(image.write())


def test_a_repeated_loss_is_reported_once():
    topic = [TOPIC, *(attrs.evolve(PARTITION, partition_id=i, last_known_elr=(1,)) for i in range(3))]
    image = at(33, *topic)
    losses = CollectedLosses()
    records = list(image.write(image.writer_options(loss_handler=losses)))
    assert len(losses.losses) == 1
    assert sum(isinstance(record.message, r.PartitionRecord) for record in records) == 3


def test_an_image_without_metadata_version_can_not_be_written():
    with pytest.raises(UnwritableMetadataError, match=r"offset -1 has no metadata\.version"):
        list(MetadataImage.EMPTY.write())


def test_images_are_not_written_for_a_kafka_before_3_3_iv3():
    with pytest.raises(UnwritableMetadataError, match=r"3\.3-IV3 or later, not at 3\.3-IV2"):
        ImageWriterOptions(metadata_version=from_feature_level(6))
