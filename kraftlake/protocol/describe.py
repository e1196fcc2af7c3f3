"""Descriptions of the cluster and the quorum by a node: DescribeCluster and DescribeQuorum.

Source: KIP-595 and KIP-836 (DescribeQuorum), KIP-919 (controllers answer clients too).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32

from kraftlake.protocol.address import Address
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_error import NodeError
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import ImportConflictError
from kraftlake.runtime.words import shown

METADATA_TOPIC: Final = "__cluster_metadata"
BROKERS: Final = 1
CONTROLLERS: Final = 2
"""The endpoint types in a DescribeCluster request."""
OF_ANOTHER_TYPE: Final = frozenset({ErrorCode.MISMATCHED_ENDPOINT_TYPE, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE})
"""The errors of a node with endpoints of the other type."""


class OtherClusterError(ImportConflictError):
    """Reports a node of another cluster than the expected one."""


@attrs.frozen(kw_only=True)
class Leader:
    """The leader of an epoch as a node knows it; id −1 and no address if unknown."""

    id: int
    epoch: int
    address: Address | None


UNKNOWN_LEADER: Final = Leader(id=-1, epoch=-1, address=None)


@attrs.frozen(kw_only=True)
class ReplicaOfQuorum:
    """A voter or an observer as the leader knows it; times in epoch ms, −1 if unknown."""

    id: int
    directory_id: Uuid | None
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


@attrs.frozen(kw_only=True)
class QuorumDescription:
    """The leader's answer to DescribeQuorum."""

    error: ErrorCode
    leader: Leader
    high_watermark: int = -1
    voters: tuple[ReplicaOfQuorum, ...] = ()
    observers: tuple[ReplicaOfQuorum, ...] = ()


def describe_quorum(node: NodeClient) -> QuorumDescription:
    """Request the voters and observers. Raises NodeError if the node does not answer, or sends an invalid answer."""

    def request(module: Any) -> Any:
        partition = module.PartitionData(partition_index=i32(0))
        topic = module.TopicData(topic_name=TopicName(METADATA_TOPIC), partitions=(partition,))
        return module.DescribeQuorumRequest(topics=(topic,))

    answer = node.ask("describe_quorum", range(3), request)
    partition = only_partition(node, answer.error_code, answer.topics)
    if not hasattr(partition, "error_code"):
        return QuorumDescription(error=partition, leader=UNKNOWN_LEADER)
    return QuorumDescription(
        error=partition.error_code,
        leader=leader_of(partition, ()),
        high_watermark=int(partition.high_watermark),
        voters=tuple(map(_replica, partition.current_voters or ())),
        observers=tuple(map(_replica, partition.observers or ())),
    )


def _replica(state: Any) -> ReplicaOfQuorum:
    directory = getattr(state, "replica_directory_id", None)
    return ReplicaOfQuorum(
        id=int(state.replica_id),
        directory_id=None if directory is None else Uuid(directory.bytes),
        log_end_offset=int(state.log_end_offset),
        last_fetch_timestamp=int(getattr(state, "last_fetch_timestamp", -1)),
        last_caught_up_timestamp=int(getattr(state, "last_caught_up_timestamp", -1)),
    )


def describe_cluster(node: NodeClient, endpoints: int) -> Any:
    """Return the answer to a DescribeCluster for endpoints of a type. Raises NodeError as `describe_quorum`."""

    def request(module: Any) -> Any:
        known = module.DescribeClusterRequest.__dataclass_fields__
        options = {"endpoint_type": i8(endpoints)} if "endpoint_type" in known else {}
        return module.DescribeClusterRequest(include_cluster_authorized_operations=False, **options)

    return node.ask("describe_cluster", range(2), request)


def describe_own_cluster(node: NodeClient) -> tuple[Any, bool]:
    """A broker's or a controller's answer to a DescribeCluster, and whether it is a controller. Raises NodeError."""
    answer = describe_cluster(node, CONTROLLERS)
    is_controller = answer.error_code not in OF_ANOTHER_TYPE
    if not is_controller:
        answer = describe_cluster(node, BROKERS)
    if answer.error_code != ErrorCode.NONE:
        # A controller asks for more than a broker does.
        raise NodeError(f"{node.address} does not tell its cluster: {refusal_words(answer.error_code, node, 'Alter')}.")
    return answer, is_controller


def controller_in(answer: Any) -> list[Address]:
    """The address of the controller that an answer to a DescribeCluster names; none if it names no known node."""
    return [Address(each.host, int(each.port)) for each in answer.brokers if each.broker_id == answer.controller_id]


def refusal_words(code: ErrorCode, node: NodeClient, operation: str) -> str:
    """The reason of a node that refuses a description, for a sentence; `operation` on the cluster is its right."""
    if code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return code.name.lower()
    broker = "" if operation == "Describe" else " (a broker tells it without: ask one)"
    return f"{node.principal} needs an ACL for {operation} on the cluster{broker}"


def checked_cluster_id(node: NodeClient, found: object, expected: str | None) -> str:
    """Return the node's cluster id; raises OtherClusterError if another one is expected."""
    if expected is not None and found != expected:
        raise OtherClusterError(
            f"{node.address} is a node of cluster {shown(str(found))}, not of {expected}: give addresses "
            f"of that cluster's nodes."
        )
    return str(found)


def only_partition(node: NodeClient, error: ErrorCode, topics: Any) -> Any:
    """Return the answer's partition, or the error of the whole answer; a list may be null if the node is faulty."""
    if error != ErrorCode.NONE:
        return error
    partitions = [partition for topic in topics or () for partition in topic.partitions or ()]
    if len(partitions) != 1:
        node.close()
        raise NodeError(f"{node.address} answered for {len(partitions)} partitions, and was asked for one.")
    return partitions[0]


def leader_of(leader: Any, endpoints: Any) -> Leader:
    """Return the leader in an answer, with its address among the endpoints."""
    addresses: Mapping[int, Address] = {int(e.node_id): Address(e.host, int(e.port)) for e in endpoints or ()}
    id_ = int(leader.leader_id)
    return Leader(id=id_, epoch=int(leader.leader_epoch), address=addresses.get(id_))
