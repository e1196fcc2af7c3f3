"""What is wrong with a cluster, written down plainly from images: the checks are held against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import groupby

import kraftlake
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_image import TopicImage
from kraftlake.records.batch import RecordBatch
from tests.cli.running import DIRECTORY
from tests.diagnosis.brute_force import steps

Thing = tuple[str, str, int]
"""A check, a topic's id, and a partition; or a check, nothing, and a broker."""
MIN_ISR = "min.insync.replicas"


def min_isr(image: MetadataImage, topic: str) -> int:
    """min.insync.replicas of a topic: its own, else the cluster's, else 1; what is no number does not count."""
    values = []
    for resource, configs in image.configs.resource_data.items():
        value = configs.data.get(MIN_ISR, "")
        if value.strip().removeprefix("-").isdigit():
            values += [(0, int(value))] if (resource.type, resource.name) == (2, topic) else []
            values += [(1, int(value))] if (resource.type, resource.name) == (4, "") else []
    return min(values, default=(2, 1))[1]


def troubles(partition: PartitionRegistration, required: int) -> Iterator[str]:
    """The conditions that a partition meets."""
    stays = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    if partition.leader == -1:
        yield "offline"
    if len(partition.isr) < required and len(partition.isr) < len(partition.replicas):
        yield "under_min_isr"
    if any(replica not in partition.isr for replica in stays):
        yield "under_replicated"
    if partition.adding_replicas or partition.removing_replicas:
        yield "being_reassigned"
    if partition.leader_recovery_state == 1:
        yield "recovering"


def of_topic(topic: TopicImage, required: int) -> set[Thing]:
    """What is wrong with the partitions of a topic."""
    return {
        (trouble, str(topic.id), number)
        for number, partition in topic.partitions.items()
        for trouble in troubles(partition, required)
    }


def of_brokers(image: MetadataImage) -> set[Thing]:
    """The brokers that are fenced or shutting down."""
    fenced = {("fenced", "", id_) for id_, one in image.cluster.brokers.items() if one.fenced}
    return fenced | {
        ("inControlledShutdown", "", id_) for id_, one in image.cluster.brokers.items() if one.in_controlled_shutdown
    }


def since_when(batches: Iterable[RecordBatch], end: MetadataImage) -> dict[Thing, int]:
    """Everything that is wrong at the end, and since which offset: found at every offset, one after the other.

    min.insync.replicas counts as it is at the end.
    """
    required = {name: min_isr(end, name) for name in end.topics.topics_by_name()}
    topics: dict[str, tuple[TopicImage, set[Thing]]] = {}
    since: dict[Thing, int] = {}
    for offset, images in groupby(steps(batches), key=lambda step: step.since):
        if offset > end.offset:
            break
        *_, step = images
        now = of_brokers(step.image)
        for name, topic in step.image.topics.topics_by_name().items():
            if name not in topics or topics[name][0] is not topic:
                topics[name] = (topic, of_topic(topic, required.get(name, 1)))
            now |= topics[name][1]
        since = {thing: since.get(thing, offset) for thing in now}
    return since


@cache
def since_when_in_sample(at: int | None) -> Mapping[Thing, int]:
    """The same of the sample, at an offset or at its end: seconds, which several tests share."""
    sample = kraftlake.open(DIRECTORY)
    return since_when(sample.batches(), sample.image(at))
