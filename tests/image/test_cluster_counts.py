"""The controller's metrics and the brokers' partitions, counted on an image."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given

import kraftlake
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.broker_partitions import (
    BrokerCounts,
    BrokerPartitions,
    count_partitions_of_brokers,
    min_insync_replicas,
    partitions_of,
    partitions_with_elr,
)
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.topics import topics_image
from kraftlake.records import metadata_records as r
from tests.histories import histories, uuid_of

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def image_of(*messages):
    delta = MetadataDelta(MetadataImage.EMPTY)
    for message in messages:
        delta.replay(message)
    return delta.apply(MetadataProvenance(offset=len(messages) - 1, epoch=1))


def partition(number, replicas, isr, leader):
    return r.PartitionRecord(
        partition_id=number, topic_id=uuid_of(9), replicas=replicas, isr=isr, leader=leader, leader_epoch=0,
        partition_epoch=0,
    )  # fmt: skip


def broker(id_, **fields):
    return r.RegisterBrokerRecord(broker_id=id_, broker_epoch=id_, **fields)


def min_isr(value, topic=""):
    return r.ConfigRecord(resource_type=2 if topic else 4, resource_name=topic, name="min.insync.replicas", value=value)


FOO = r.TopicRecord(name="foo", topic_id=uuid_of(9))
MIXED = (
    broker(1, fenced=False),
    broker(2, fenced=True),
    broker(3, fenced=True, in_controlled_shutdown=True),
    FOO,
    partition(0, (1, 2), (1, 2), 1),
    partition(1, (1, 2), (2,), 2),
    partition(2, (2, 4), (), -1),
)


def test_the_metrics_have_kafkas_names():
    assert count_cluster(image_of(*MIXED)).by_metric() == {
        "ActiveBrokerCount": 1,
        "FencedBrokerCount": 2,
        "ControlledShutdownBrokerCount": 1,
        "GlobalTopicCount": 1,
        "GlobalPartitionCount": 3,
        "OfflinePartitionsCount": 1,
        "PreferredReplicaImbalanceCount": 2,
    }


def test_the_empty_image_counts_nothing():
    assert set(count_cluster(MetadataImage.EMPTY).by_metric().values()) == {0}
    assert count_partitions_of_brokers(MetadataImage.EMPTY) == {}


def test_a_brokers_partitions_stand_in_every_list_that_they_belong_to():
    image = image_of(*MIXED, min_isr("2"))
    assert partitions_of(image, 1) == BrokerPartitions(
        led=(("foo", 0),), followed=(("foo", 1),), out_of_isr=(("foo", 1),), under_min_isr=(("foo", 1),)
    )
    assert partitions_of(image, 2) == BrokerPartitions(
        led=(("foo", 1),),
        followed=(("foo", 0), ("foo", 2)),
        out_of_isr=(("foo", 2),),
        under_min_isr=(("foo", 1), ("foo", 2)),
        offline=(("foo", 2),),
    )
    assert partitions_of(image, 99) == BrokerPartitions()


def test_brokers_count_that_host_something_or_are_registered():
    counts = count_partitions_of_brokers(image_of(*MIXED))
    assert list(counts) == [1, 2, 3, 4]
    assert counts[3] == BrokerCounts()
    assert counts[4] == BrokerCounts(followed=1, out_of_isr=1, under_min_isr=1, offline=1)


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ((), 1),
        ((min_isr("2"),), 2),
        ((min_isr("2"), min_isr("3", "foo")), 3),
        ((min_isr("2"), min_isr("many", "foo")), 2),
        ((min_isr("²"),), 1),
        ((min_isr(" +2\t"),), 2),
    ],
)
def test_the_min_isr_is_the_topics_or_the_clusters_or_one(configs, expected):
    assert min_insync_replicas(image_of(*configs), "foo") == expected


def test_no_more_replicas_in_sync_are_asked_for_than_there_are():
    image = image_of(FOO, partition(0, (1, 2), (1, 2), 1), min_isr("3"))
    assert partitions_of(image, 1).under_min_isr == ()


@given(histories(min_steps=10, topics_only=True))
def test_all_brokers_in_one_pass_are_the_brokers_one_by_one(records):
    image = image_of(*(record.message for record in records))
    counts = count_partitions_of_brokers(image)
    assert counts == {broker: partitions_of(image, broker).counts() for broker in counts}
    every = [p for topic in image.topics.topics_by_id().values() for p in topic.partitions.values()]
    hosted = Counter(broker for p in every for broker in set(p.replicas))
    assert {id_: c.led + c.followed for id_, c in counts.items() if c != BrokerCounts()} == hosted
    totals = count_cluster(image)
    assert totals.global_partition_count == len(every)
    assert sum(c.led for c in counts.values()) <= len(every) - totals.offline_partitions_count


def several_replicas(image):
    """The image with wide and moving partitions beside the others."""
    delta = MetadataDelta(image)
    delta.replay(r.TopicRecord(name="wide", topic_id=uuid_of(77)))
    for number, replicas in enumerate([(), (1, 2, 3, 4), (5, 4, 3, 2, 1)]):
        fields = {"replicas": replicas, "isr": replicas[1:], "leader": replicas[0] if number == 2 else -1}
        delta.replay(r.PartitionRecord(partition_id=number, topic_id=uuid_of(77), partition_epoch=0, **fields))
    eligible = r.PartitionRecord(
        partition_id=3, topic_id=uuid_of(77), replicas=(1,), isr=(1,), leader=1, eligible_leader_replicas=(6,)
    )
    delta.replay(eligible)
    delta.replay(min_isr("4", "wide"))
    return delta.apply(image.provenance)


@given(histories(min_steps=10, topics_only=True))
def test_columns_count_what_objects_count(records):
    def counted(image):
        eligible = sorted(found[:2] for found in partitions_with_elr(image.topics))
        assert ("wide", 3) in eligible
        return (
            count_cluster(image),
            count_partitions_of_brokers(image),
            [partitions_of(image, b) for b in range(7)],
            eligible,
        )

    image = several_replicas(image_of(*(record.message for record in records)))
    few = counted(image)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topics_image, "PACK_FROM", 0)
        large = several_replicas(image_of(*(record.message for record in records)))
        assert large.topics.is_large
        many = counted(large)
    assert many == few


def test_more_brokers_than_there_is_room_for_at_first_are_counted(monkeypatch):
    monkeypatch.setattr(topics_image, "PACK_FROM", 0)
    image = image_of(FOO, *[partition(number, (number, number + 1), (number,), number) for number in range(1100)])
    assert image.topics.is_large
    counts = count_partitions_of_brokers(image)
    assert len(counts) == 1101
    assert counts[1100] == BrokerCounts(followed=1, out_of_isr=1)
    assert {counts[broker] for broker in range(1, 1100)} == {BrokerCounts(led=1, followed=1, out_of_isr=1)}


def test_what_the_admin_client_saw_of_a_real_cluster_is_counted():
    folder = SAMPLES / "kafka-4.4"
    expected = sorted((folder / "expected").glob("image-*.json.gz"))
    assert expected
    source = kraftlake.open(folder / "log" / "__cluster_metadata-0")
    for file in expected:
        theirs = json.loads(gzip.decompress(file.read_bytes()))
        partitions = [p for topic in theirs["topics"].values() for p in topic["partitions"].values()]
        counts = count_cluster(source.image(theirs["offset"]))
        assert counts.global_topic_count == len(theirs["topics"])
        assert counts.global_partition_count == len(partitions)
        assert counts.offline_partitions_count == sum(p["leader"] == -1 for p in partitions)
        assert counts.fenced_broker_count == sum(b["fenced"] for b in theirs["brokers"].values())
