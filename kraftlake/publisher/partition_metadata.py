"""The topics of an image from a client's view: leaders, replicas, and offline replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from kraftlake.image import BrokerRegistration, MetadataImage, PartitionRegistration, problem_of_name
from kraftlake.publisher.metadata_responses import (
    Cursor,
    DescribedTopics,
    MetadataError,
    Node,
    PartitionMetadata,
    TopicMetadata,
)
from kraftlake.records.uuid import Uuid


def node_of(broker: BrokerRegistration, listener: str) -> Node | None:
    """The address of a broker's listener; None if it has no such listener."""
    endpoint = broker.listeners.get(listener)
    if endpoint is None:
        return None
    return Node(id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced)


def offline_replicas(image: MetadataImage, partition: PartitionRegistration, listener: str | None) -> tuple[int, ...]:
    """Replicas with an offline directory, or whose broker is unregistered, fenced or lacks `listener` (None: any)."""
    return tuple(replica for replica in partition.replicas if _is_offline(image, partition, replica, listener))


def topic_metadata(
    image: MetadataImage, name: str, listener: str, *, error_endpoints: bool, error_listeners: bool
) -> TopicMetadata | None:
    """A topic for a Metadata response; None if it has no partitions or does not exist."""
    topic = image.topics.get_topic(name)
    if topic is None or not len(topic.partitions):
        return None
    partitions = tuple(
        _partition_metadata(
            image, number, partition, listener, error_endpoints=error_endpoints, error_listeners=error_listeners
        )
        for number, partition in sorted(topic.partitions.items())
    )
    return TopicMetadata(name=name, topic_id=topic.id, partitions=partitions)


def describe_topics(
    image: MetadataImage,
    names: Iterable[str],
    listener: str,
    *,
    start_index: Callable[[str], int],
    limit: int,
    ignore_errors: bool,
) -> DescribedTopics:
    """The topics for a DescribeTopicPartitions response, up to `limit` partitions."""
    topics: list[TopicMetadata] = []
    remaining = limit
    for name in names:
        if remaining <= 0:
            return DescribedTopics(tuple(topics), Cursor(name, 0))
        topic = image.topics.get_topic(name)
        if topic is None:
            if not ignore_errors:
                error = MetadataError.UNKNOWN_TOPIC_OR_PARTITION
                if problem_of_name(name) is not None:
                    error = MetadataError.INVALID_TOPIC_EXCEPTION
                topics.append(TopicMetadata(error=error, name=name, topic_id=Uuid.ZERO))
            continue
        first = start_index(name)
        last = min(len(topic.partitions), first + remaining)
        numbered = ((number, topic.partitions.get(number)) for number in range(first, last))
        partitions = tuple(_described(image, number, p, listener) for number, p in numbered if p is not None)
        topics.append(TopicMetadata(name=name, topic_id=topic.id, partitions=partitions))
        if last < len(topic.partitions):
            return DescribedTopics(tuple(topics), Cursor(name, last))
        remaining -= len(partitions)
    return DescribedTopics(tuple(topics))


def _is_offline(image: MetadataImage, partition: PartitionRegistration, replica: int, listener: str | None) -> bool:
    broker = image.cluster.brokers.get(replica)
    if broker is None or broker.fenced or (listener is not None and listener not in broker.listeners):
        return True
    directory = partition.directory(replica)
    return directory is None or not broker.has_online_dir(directory)


def _reachable(image: MetadataImage, replicas: tuple[int, ...], listener: str) -> tuple[int, ...]:
    brokers = image.cluster.brokers
    found = ((replica, brokers.get(replica)) for replica in replicas)
    return tuple(r for r, broker in found if broker is not None and not broker.fenced and listener in broker.listeners)


def _leader(image: MetadataImage, partition: PartitionRegistration, listener: str) -> Node | None:
    broker = image.cluster.brokers.get(partition.leader)
    return None if broker is None else node_of(broker, listener)


def _partition_metadata(  # noqa: PLR0917 - private, all arguments of one request
    image: MetadataImage,
    number: int,
    partition: PartitionRegistration,
    listener: str,
    error_endpoints: bool,
    error_listeners: bool,
) -> PartitionMetadata:
    replicas, isr = partition.replicas, partition.isr
    if error_endpoints:
        replicas, isr = (_reachable(image, brokers, listener) for brokers in (replicas, isr))
    leader = _leader(image, partition, listener)
    if leader is None:
        lacks_listener = partition.leader in image.cluster.brokers and error_listeners
        error = MetadataError.LISTENER_NOT_FOUND if lacks_listener else MetadataError.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
        error = MetadataError.REPLICA_NOT_AVAILABLE
    else:
        error = MetadataError.NONE
    return PartitionMetadata(
        error=error,
        partition_index=number,
        leader_id=-1 if leader is None else leader.id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline_replicas(image, partition, listener),
    )


def _described(image: MetadataImage, number: int, partition: PartitionRegistration, listener: str) -> PartitionMetadata:
    plain = _partition_metadata(image, number, partition, listener, error_endpoints=False, error_listeners=False)
    elr, last_known_elr = partition.elr, partition.last_known_elr
    return attrs.evolve(plain, error=MetadataError.NONE, eligible_leader_replicas=elr, last_known_elr=last_known_elr)
