"""Random histories of commands: invariants after each command, and the image that Kafka's own classes read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.topics.partition_registration import NO_LEADER
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.kafka_files.writer import write_segment
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import ClearElrRecord, FeatureLevelRecord, PartitionChangeRecord
from kraftlake.records.metadata_version import from_feature_level
from kraftlake.records.schema import Message
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from tests.controller.controlled_cluster import ControlledCluster
from tests.controller.random_commands import BROKERS, COMMANDS, TOPICS
from tests.few_examples import few_examples
from tests.interop.kafka_classes import kafka_image_of_log, normal


@st.composite
def clusters(draw: Any) -> ControlledCluster:
    """Four brokers and a topic, with and without ELR, at metadata.versions old and new."""
    version = from_feature_level(draw(st.sampled_from((33, 33, 33, 23, 17, 12, 11, 7))))
    features = {"eligible.leader.replicas.version": draw(st.integers(0, 1))} if version.level >= 23 else {}
    cluster = ControlledCluster(version=version, features=features)
    cluster.start(*BROKERS)
    cluster.assigned(TOPICS[0], (1, 2, 3), (2, 3, 4))
    return cluster


def run_random_command(draw: Any, cluster: ControlledCluster) -> str:
    command = draw(st.sampled_from(COMMANDS))
    try:
        command(draw, cluster)
    except ControllerApiError as refusal:
        assert cluster.added == [], "what is refused as a whole leaves nothing"
        return refusal.error.name
    return command.__name__


@few_examples
@given(clusters(), st.data())
def test_the_invariants_hold_after_every_command(cluster: ControlledCluster, data: st.DataObject) -> None:
    for _ in range(30):
        before, end = cluster.image, cluster.state.next_offset
        run_random_command(data.draw, cluster)
        assert cluster.state.image is cluster.image, "all of it is durable"
        assert cluster.log[-1].last_offset + 1 == cluster.state.next_offset >= end
        assert_sound(cluster.image)
        if not had_elr(cluster):
            assert all(p.isr and not p.elr for topic in cluster.image.topics.topics_by_id().values()
                       for p in topic.partitions.values())  # fmt: skip
        for topic in before.topics.topics_by_id().values():
            after = cluster.image.topics.get_topic_by_id(topic.id)
            if after is not None:
                assert_epochs_go_on(topic, after, messages_from(cluster, end))
    assert replayed(cluster.log) == cluster.image, "what the controller believes is what the log says"


def messages_from(cluster: ControlledCluster, offset: int) -> list[Message]:
    return [record.message for batch in cluster.log if batch.base_offset >= offset for record in batch.messages()]


def had_elr(cluster: ControlledCluster) -> bool:
    """Whether eligible leader replicas were ever kept: what they left behind stays when the feature goes."""
    return any(
        isinstance(message, FeatureLevelRecord)
        and message.name == "eligible.leader.replicas.version"
        and message.feature_level > 0
        for message in messages_from(cluster, 0)
    )


def assert_sound(image: MetadataImage) -> None:
    for topic in image.topics.topics_by_name().values():
        assert sorted(topic.partitions) == list(range(len(topic.partitions)))
        for partition in topic.partitions.values():
            replicas, isr, elr = set(partition.replicas), set(partition.isr), set(partition.elr)
            assert partition.leader == NO_LEADER or partition.leader in isr
            assert isr <= replicas
            assert not isr & elr
            assert set(partition.adding_replicas) | set(partition.removing_replicas) <= replicas
            if partition.leader != NO_LEADER:
                leader = image.cluster.brokers[partition.leader]
                assert not leader.fenced


def assert_epochs_go_on(before: TopicImage, after: TopicImage, added: Sequence[Message]) -> None:
    changes = Counter(m.partition_id for m in added if isinstance(m, PartitionChangeRecord) and m.topic_id == before.id)
    clears = sum(isinstance(message, ClearElrRecord) for message in added)
    for number, old in before.partitions.items():
        new = after.partitions[number]
        steps = new.partition_epoch - old.partition_epoch
        assert changes[number] <= steps <= changes[number] + clears
        assert 0 <= new.leader_epoch - old.leader_epoch <= steps
        assert steps or new == old
        if new.leader != old.leader:
            assert new.leader_epoch > old.leader_epoch


def replayed(log: Sequence[RecordBatch]) -> MetadataImage:
    loader = MetadataBatchLoader()
    for batch in log:
        loader.load_batch(batch)
    return loader.take_image()


@pytest.mark.spark
@few_examples
@given(clusters(), st.data())
def test_kafkas_classes_make_the_same_image_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, cluster: ControlledCluster, data: st.DataObject
) -> None:
    for _ in range(25):
        run_random_command(data.draw, cluster)
    segment = tmp_path_factory.mktemp("log") / f"{0:020d}.log"
    write_segment(segment, cluster.log)
    theirs = kafka_image_of_log([Path(segment)], cluster.log[-1].last_offset)
    ours = json.loads(json.dumps(image_to_json(cluster.image, show_secrets=True)))
    assert normal(ours) == normal(theirs)
