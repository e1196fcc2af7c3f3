"""The context that a broker's handlers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.kafka_names import AclOperation, ResourceType
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.publisher.metadata_responses import Node
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.server.requests.authorization import Authorization
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.messages import of_version


@attrs.frozen(kw_only=True)
class ServingContext:
    """The broker's id and cluster, its metadata, its replicas, and the authorization."""

    broker_id: int
    cluster_id: str
    cache: MetadataCache
    manager: ReplicaManager
    authorization: Authorization

    def allows_on_topic(
        self, request: Request, operation: AclOperation, topic: str, *, count: int = 1, log_denied: bool = True
    ) -> bool:
        """Whether the sender of a request may perform an operation on a topic. Raises and logs as `Authorization`."""
        return self.authorization.allows(
            request, operation, ResourceType.TOPIC, topic, count=count, log_denied=log_denied
        )  # fmt: skip

    def leader_endpoints(self, module: Any, partitions: Iterable[TopicPartition], listener: str) -> tuple[Any, ...]:
        """The addresses of the leaders of partitions (KIP-951), as kio's NodeEndpoint."""
        nodes = {
            node.id: node
            for name in partitions
            if (node := self.cache.partition_leader_endpoint(name.topic, name.partition, listener)) is not None
            if node is not Node.NO_NODE
        }
        return tuple(
            module.NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in nodes.values()
        )

    def leader_of(self, module: Any, name: TopicPartition) -> Any:
        """The leader and its epoch of a partition, as known to this broker, in kio's LeaderIdAndEpoch."""
        known = self.cache.partition(name.topic, name.partition)
        if known is None:
            return module.LeaderIdAndEpoch()
        return module.LeaderIdAndEpoch(leader_id=known.leader, leader_epoch=known.leader_epoch)


def fail_after_fault(request: Request) -> None:
    """Answer a delayed request that an internal error has ended; if that fails, close the connection."""
    try:
        request.fail(ErrorCode.UNKNOWN_SERVER_ERROR)
    except Exception:
        request.close()
        raise


def by_topic(
    kind: Any, topics: Iterable[Any], name_field: str, field: str, answers: Callable[[Any], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Group answers by topic, each under the name or id of the request, in the request's order."""
    return tuple(
        of_version(
            kind,
            **{key: getattr(topic, key) for key in (name_field, "topic_id") if hasattr(topic, key)},
            **{field: answers(topic)},
        )
        for topic in topics
    )
