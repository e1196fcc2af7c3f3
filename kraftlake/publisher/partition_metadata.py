"""The topics of an image from a client's view: leaders, replicas, and offline replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import attrs

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topic_names import problem_of_name
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.metadata_responses import (
    Cursor,
    DescribedTopics,
    Node,
    PartitionMetadata,
    TopicMetadata,
)
from kraftlake.records.uuid import Uuid


def node_of(broker: BrokerRegistration, listener: str) -> Node | None:
    """The address of a broker's listener; None without such a listener."""
    endpoint = broker.listeners.get(listener)
    if endpoint is None:
        return None
    return Node(id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack, is_fenced=broker.fenced)


def offline_replicas(image: MetadataImage, partition: PartitionRegistration, listener: str | None) -> tuple[int, ...]:
    """Replicas with an offline directory, or whose broker is unregistered, fenced or lacks `listener` (None: any)."""
    return _View.of(image, listener).offline(partition.replicas, partition.directories)


@attrs.frozen
class _View:
    """The brokers of an image as seen from one listener (None: any); computed once, read for each partition."""

    offline: Callable[[tuple[int, ...], tuple[Uuid, ...]], tuple[int, ...]]
    """A partition's replicas that can't be reached, or whose directory is offline."""
    reachable: Callable[[tuple[int, ...]], tuple[int, ...]]
    node: Callable[[int], Node | None]
    is_registered: Callable[[int], bool]

    @classmethod
    def of(cls, image: MetadataImage, listener: str | None) -> _View:
        brokers = image.cluster.brokers

        @cache
        def reachable(replicas: tuple[int, ...]) -> tuple[int, ...]:
            found = ((replica, brokers.get(replica)) for replica in replicas)
            return tuple(
                replica
                for replica, broker in found
                if broker is not None and not broker.fenced and (listener is None or listener in broker.listeners)
            )

        @cache
        def offline(replicas: tuple[int, ...], directories: tuple[Uuid, ...]) -> tuple[int, ...]:
            up = reachable(replicas)
            placed = zip(replicas, directories, strict=True)
            return tuple(one for one, where in placed if one not in up or not brokers[one].has_online_dir(where))

        @cache
        def node(broker_id: int) -> Node | None:
            broker = brokers.get(broker_id)
            return None if broker is None or listener is None else node_of(broker, listener)

        return cls(offline, reachable, node, brokers.__contains__)


def topic_metadata(
    image: MetadataImage, name: str, listener: str, *, error_endpoints: bool, error_listeners: bool
) -> TopicMetadata | None:
    """A topic for a Metadata response; None if it has no partitions or does not exist."""
    topic = image.topics.get_topic(name)
    if topic is None or not len(topic.partitions):
        return None
    view = _View.of(image, listener)
    partitions = tuple(
        _partition_metadata(view, number, partition, error_endpoints=error_endpoints, error_listeners=error_listeners)
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
    view, remaining = _View.of(image, listener), limit
    for name in names:
        if remaining <= 0:
            return DescribedTopics(tuple(topics), Cursor(name, 0))
        topic = image.topics.get_topic(name)
        if topic is None:
            if not ignore_errors:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if problem_of_name(name) is not None:
                    error = ErrorCode.INVALID_TOPIC_EXCEPTION
                topics.append(TopicMetadata(error=error, name=name, topic_id=Uuid.ZERO))
            continue
        first = start_index(name)
        last = min(len(topic.partitions), first + remaining)
        numbered = ((number, topic.partitions.get(number)) for number in range(first, last))
        partitions = tuple(_described(view, number, p) for number, p in numbered if p is not None)
        topics.append(TopicMetadata(name=name, topic_id=topic.id, partitions=partitions))
        if last < len(topic.partitions):
            return DescribedTopics(tuple(topics), Cursor(name, last))
        remaining -= len(partitions)
    return DescribedTopics(tuple(topics))


def _partition_metadata(
    view: _View, number: int, partition: PartitionRegistration, *, error_endpoints: bool, error_listeners: bool
) -> PartitionMetadata:
    replicas, isr = partition.replicas, partition.isr
    if error_endpoints:
        replicas, isr = view.reachable(replicas), view.reachable(isr)
    leader = view.node(partition.leader)
    if leader is None:
        lacks_listener = error_listeners and view.is_registered(partition.leader)
        error = ErrorCode.LISTENER_NOT_FOUND if lacks_listener else ErrorCode.LEADER_NOT_AVAILABLE
    elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    else:
        error = ErrorCode.NONE
    return PartitionMetadata(
        error=error,
        partition_index=number,
        leader_id=-1 if leader is None else leader.id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=view.offline(partition.replicas, partition.directories),
    )


def _described(view: _View, number: int, partition: PartitionRegistration) -> PartitionMetadata:
    plain = _partition_metadata(view, number, partition, error_endpoints=False, error_listeners=False)
    elr, last_known_elr = partition.elr, partition.last_known_elr
    return attrs.evolve(plain, error=ErrorCode.NONE, eligible_leader_replicas=elr, last_known_elr=last_known_elr)
