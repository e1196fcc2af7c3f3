"""The cluster from a client's view: nodes, and partitions with a leader."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import attrs

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topic_names import INTERNAL_TOPICS
from kraftlake.publisher.metadata_responses import Node
from kraftlake.publisher.partition_metadata import node_of, offline_replicas


@attrs.frozen(kw_only=True)
class PartitionInfo:
    """A partition from a client's view, with replicas as nodes. Source: org.apache.kafka.common.PartitionInfo."""

    topic: str
    partition: int
    leader: Node
    replicas: tuple[Node, ...]
    in_sync_replicas: tuple[Node, ...]
    offline_replicas: tuple[Node, ...]


@attrs.frozen(kw_only=True)
class Cluster:
    """A node for each listener of each broker, and the partitions that a registered broker leads.

    A partition is listed once for each listener of its leader, as in Kafka. `controller` is any broker that is not
    fenced, since clients can't reach the controller itself. Source: org.apache.kafka.common.Cluster.
    """

    cluster_id: str
    nodes: tuple[Node, ...]
    partitions: tuple[PartitionInfo, ...]
    internal_topics: frozenset[str]
    controller: Node


def cluster_of(image: MetadataImage, cluster_id: str, random: Random) -> Cluster:
    """Build the cluster of an image; `random` chooses the broker in place of the controller.

    Source: org.apache.kafka.metadata.MetadataCache.toCluster.
    """
    brokers = dict(sorted(image.cluster.brokers.items()))
    nodes = {broker.id: _nodes(broker) for broker in brokers.values()}

    def of(replicas: Iterable[int]) -> tuple[Node, ...]:
        return tuple(node for replica in replicas for node in nodes.get(replica, ()))

    partitions: list[PartitionInfo] = []
    internal: set[str] = set()
    for name, topic in image.topics.topics_by_name().items():
        for number, state in sorted(topic.partitions.items()):
            if state.leader in nodes and name in INTERNAL_TOPICS:
                internal.add(name)
            partitions += [
                PartitionInfo(
                    topic=name,
                    partition=number,
                    leader=leader,
                    replicas=of(state.replicas),
                    in_sync_replicas=of(state.isr),
                    offline_replicas=of(offline_replicas(image, state, None)),
                )
                for leader in nodes.get(state.leader, ())
            ]
    alive = [broker.id for broker in brokers.values() if not broker.fenced]
    controller = nodes[random.choice(alive)] if alive else ()
    return Cluster(
        cluster_id=cluster_id,
        nodes=tuple(node for of_broker in nodes.values() for node in of_broker),
        partitions=tuple(partitions),
        internal_topics=frozenset(internal),
        controller=controller[0] if controller else Node.NO_NODE,
    )


def _nodes(broker: BrokerRegistration) -> tuple[Node, ...]:
    found = (node_of(broker, listener) for listener in broker.listeners)
    return tuple(node for node in found if node is not None)
