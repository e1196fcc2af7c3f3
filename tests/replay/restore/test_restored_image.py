"""The image to restore, field by field, on the real log of the samples and on made-up clusters."""

from __future__ import annotations

import attrs
import pytest

import kraftlake
from kraftlake.image.diff import diff_images
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.kafka_files.node.broker_directory import BrokerDirectory
from kraftlake.records.uuid import Uuid
from kraftlake.replay.restore.broker_facts import BrokerFacts, broker_facts
from kraftlake.replay.restore.restored_image import RestoredPartitions, restored_image
from kraftlake.runtime.errors import UnwritableMetadataError, UsageError
from tests.at_least_one import at_least_one
from tests.replay.sample_logs import directory_of

PLACE = MetadataProvenance(offset=9_999_999, epoch=777)
MARGIN = 1000
SAMPLE = kraftlake.open(directory_of("kafka-4.4"))
NEWEST = SAMPLE.image()


def restored(
    at: MetadataImage, newest: MetadataImage = NEWEST, facts: BrokerFacts | None = None, **fields: object
) -> tuple[MetadataImage, RestoredPartitions]:
    options = {"provenance": PLACE, "voters": {3000}, "margin": MARGIN, **fields}
    return restored_image(at, newest, facts or BrokerFacts(), **options)  # type: ignore[arg-type]


def directory(tmp: str, node_id: int, **fields: object) -> BrokerDirectory:
    from pathlib import Path

    values = {
        "cluster_id": "c", "directory_id": None, "clean_epoch": None, "metadata_log": None, "replicas": (), **fields,
    }  # fmt: skip
    return BrokerDirectory(path=Path(tmp), node_id=node_id, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [260, 458, 2901, 4592, None])
def test_a_restored_image_is_that_of_the_offset_but_for_what_it_must_not_be(at: int | None) -> None:
    image = SAMPLE.image(at)
    made, _ = restored(image)
    assert made.provenance == PLACE
    changed = {"provenance", "cluster", "topics", "producer_ids"}
    for field in at_least_one(attrs.fields(MetadataImage)):
        if field.name not in changed:
            assert getattr(made, field.name) is getattr(image, field.name)
    assert made.producer_ids.next_producer_id == MARGIN + max(
        0, image.producer_ids.next_producer_id, NEWEST.producer_ids.next_producer_id
    )
    assert set(made.topics.topics_by_name()) == set(image.topics.topics_by_name())
    highest = 0
    for name, topic in image.topics.topics_by_name().items():
        back = made.topics.get_topic(name)
        assert back is not None
        assert back.id == topic.id
        assert set(back.partitions) == set(topic.partitions)
        for number, before in topic.partitions.items():
            after = back.partitions[number]
            newest = NEWEST.topics.get_partition(topic.id, number) or before
            assert after.leader == -1
            assert after.leader_epoch == MARGIN + max(before.leader_epoch, newest.leader_epoch)
            assert after.partition_epoch == MARGIN + max(before.partition_epoch, newest.partition_epoch)
            assert set(before.replicas) - set(before.removing_replicas) <= set(after.replicas)
            assert set(after.isr) <= set(newest.isr or newest.elr)
            assert set(after.isr) <= set(after.replicas)
            assert after.isr or not newest.isr
            assert len(after.directories) == len(after.replicas)
            highest = max(highest, newest.leader_epoch)
    assert highest


def test_brokers_are_fenced_and_only_the_voters_stay_registered_as_controllers() -> None:
    image = SAMPLE.image(2901)
    made, _ = restored(image, voters={3000, 3001})
    assert set(made.cluster.brokers) == {*image.cluster.brokers, *NEWEST.cluster.brokers}
    for id_, broker in made.cluster.brokers.items():
        assert broker.fenced
        assert not broker.in_controlled_shutdown
        known = NEWEST.cluster.brokers.get(id_) or image.cluster.brokers[id_]
        was = image.cluster.brokers.get(id_, known)
        assert broker.epoch == known.epoch
        assert (broker.listeners, broker.rack, broker.supported_features) == (
            was.listeners, was.rack, was.supported_features
        )  # fmt: skip
    assert set(made.cluster.controllers) == set(image.cluster.controllers) & {3000, 3001}
    assert not set(restored(image, voters={1})[0].cluster.controllers)


def test_a_broker_whose_directory_was_given_counts_as_shut_down_in_order() -> None:
    facts = broker_facts([directory("a", 1, clean_epoch=4711), directory("b", 2)], NEWEST)
    made, _ = restored(SAMPLE.image(458), facts=facts)
    assert (made.cluster.brokers[1].epoch, made.cluster.brokers[2].epoch) == (4711, -1)
    assert made.cluster.brokers[3].epoch == NEWEST.cluster.brokers[3].epoch


def test_an_epoch_beyond_32_bits_is_refused_by_the_partitions_name() -> None:
    with pytest.raises(UnwritableMetadataError, match=r"The epochs of .*-\d would exceed"):
        restored(SAMPLE.image(458), margin=2**31 - 1)


def test_the_same_state_twice_makes_the_same_image() -> None:
    image = SAMPLE.image(458)
    assert diff_images(restored(image)[0], restored(image)[0]).is_empty()


def test_a_directory_that_is_given_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        broker_facts([directory("a", 1), directory("a", 1)], NEWEST)


def test_a_broker_was_shown_where_all_its_registered_directories_were_given() -> None:
    broker = NEWEST.cluster.brokers[1]
    homes = (Uuid(b"a" * 16), Uuid(b"b" * 16))
    brokers = NEWEST.cluster.brokers.insert(1, attrs.evolve(broker, directories=homes))
    newest = attrs.evolve(NEWEST, cluster=attrs.evolve(NEWEST.cluster, brokers=brokers))
    first, second = (directory(str(home[:1]), 1, directory_id=home) for home in homes)
    assert broker_facts([first], newest).complete == frozenset()
    assert broker_facts([first, second], newest).complete == {1}
