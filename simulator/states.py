"""An abstraction of a cluster's state, by which an hour is seen to show what none before it has shown."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration


def states_of(before: MetadataImage, after: MetadataImage) -> Iterator[int]:
    """The abstract states of the partitions that differ from an image before, as numbers that are the same anywhere.

    A state is a partition's, with that of the brokers around it: the sizes of its ISR, ELR and last known ELR beside
    the number of replicas, its leader's service, how many members of the ISR are fenced, recovery, and a reassignment;
    and how many brokers are fenced or shut down. Names, ids, epochs and offsets do not count.
    """
    brokers = after.cluster.brokers.values()
    around = sum(one.fenced for one in brokers), sum(one.in_controlled_shutdown for one in brokers), len(brokers)
    for topic in after.topics.topics_by_id().values():
        for number, partition in topic.partitions.items():
            if before.cluster is not after.cluster or before.topics.get_partition(topic.id, number) is not partition:
                yield zlib.crc32(repr((around, _of_partition(partition, after))).encode())


def _of_partition(partition: PartitionRegistration, image: MetadataImage) -> tuple[object, ...]:
    leader = image.cluster.brokers.get(partition.leader)
    service = None if leader is None else (leader.fenced, leader.in_controlled_shutdown)
    known = image.cluster.brokers
    return (
        len(partition.replicas), len(partition.isr), len(partition.elr), len(partition.last_known_elr), service,
        sum(id_ not in known or known[id_].fenced for id_ in partition.isr), int(partition.leader_recovery_state),
        len(partition.adding_replicas), len(partition.removing_replicas),
    )  # fmt: skip
