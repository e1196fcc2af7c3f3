"""The quorum of a cluster over the network: its leader and its high watermark.

Source: KIP-595 and KIP-836 (DescribeQuorum), KIP-919 (controllers answer clients too).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.describe import (
    BROKERS,
    CONTROLLERS,
    OF_ANOTHER_TYPE,
    NoLeaderError,
    checked_cluster_id,
    describe_cluster,
    describe_quorum,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import AuthenticationError, NodeError, SilentNodeError


@attrs.frozen(kw_only=True)
class QuorumPosition:
    """The answer of the leader of `leader_epoch`: offsets below `high_watermark` are committed; −1 while unknown."""

    leader_id: int
    leader_epoch: int
    high_watermark: int


class QuorumClient:
    """Queries any node of a cluster for its quorum, for one thread.

    Brokers forward the query to the controller. A controller that does not lead names the leader, which is queried
    next. The node that answered is queried first the next time, over the same connection; the others follow if it
    fails. Each new connection is checked against `cluster_id`, or the cluster of the first node that answers. `connect`
    opens them, by default over PLAINTEXT.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        cluster_id: str | None = None,
        connect: Callable[[Address], NodeClient] | None = None,
    ) -> None:
        self._addresses = list(addresses)
        self._cluster_id = cluster_id
        self._connect = connect or NodeConnector()
        self._node: NodeClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connection."""
        if self._node is not None:
            self._node.close()
            self._node = None

    def describe(self) -> QuorumPosition:
        """Query the quorum. Raises NodeError with the error of each address, OtherClusterError.

        Raises NoLeaderError if a node of the cluster answered, but not this query, and AuthenticationError if no node
        accepted the client's certificate or login.
        """
        if self._node is not None:
            try:
                return self._ask(self._node)
            except (NodeError, _NotLeaderError):
                self.close()  # it may have been restarted, or lost the lead: begin anew
        faults: list[NodeError | _NotLeaderError] = []
        waiting = list(self._addresses)
        asked: set[Address] = set()
        while waiting:
            address = waiting.pop(0)
            if address in asked:
                continue
            asked.add(address)
            try:
                return self._try(address)
            except _NotLeaderError as fault:
                waiting[:0] = fault.leader
                faults.append(fault)
            except NodeError as fault:
                faults.append(fault)
        raise _all_of(faults)

    def _try(self, address: Address) -> QuorumPosition:
        node = self._connect(address)
        try:
            leader = self._check_cluster(node)
            try:
                position = self._ask(node)
            except _NotLeaderError:
                told = f"{address} is a controller that does not lead, and knows no leader"
                raise _NotLeaderError(told, leader) from None
            except SilentNodeError as fault:
                # A broker forwards the question, and waits for a controller that accepts it.
                raise _NotLeaderError(str(fault).rstrip(".")) from None
        except BaseException:
            node.close()
            raise
        self._node = node
        return position

    def _ask(self, node: NodeClient) -> QuorumPosition:
        answer = describe_quorum(node)
        code = answer.error
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE):
            raise _NotLeaderError
        if code != ErrorCode.NONE:
            raise NodeError(f"{node.address} does not describe its quorum: {_words(code, node, 'Describe')}.")
        return QuorumPosition(
            leader_id=answer.leader.id, leader_epoch=answer.leader.epoch, high_watermark=answer.high_watermark
        )

    def _check_cluster(self, node: NodeClient) -> list[Address]:
        """Check the cluster id; returns the address of the leading controller if the node states it."""
        answer = describe_cluster(node, CONTROLLERS)
        if answer.error_code in OF_ANOTHER_TYPE:
            answer = describe_cluster(node, BROKERS)
        if answer.error_code != ErrorCode.NONE:
            # A controller asks for more than a broker does.
            raise NodeError(f"{node.address} does not tell its cluster: {_words(answer.error_code, node, 'Alter')}.")
        self._cluster_id = checked_cluster_id(node, answer.cluster_id, self._cluster_id)
        return [Address(each.host, int(each.port)) for each in answer.brokers if each.broker_id == answer.controller_id]


class _NotLeaderError(Exception):
    """Reports a node that does not lead; `leader` holds the possible address of the leader."""

    def __init__(self, told: str = "", leader: Sequence[Address] = ()) -> None:
        super().__init__(told)
        self.leader = leader


def _all_of(faults: Sequence[NodeError | _NotLeaderError]) -> NodeError:
    """Return the errors of all addresses as one error with one sentence."""
    told = "; ".join([str(fault).rstrip(".") for fault in faults])
    sentence = told if told.endswith("?") else f"{told}."
    if any(isinstance(fault, _NotLeaderError) for fault in faults):
        return NoLeaderError(sentence)
    if all(isinstance(fault, AuthenticationError) for fault in faults):
        return AuthenticationError(sentence)
    return NodeError(sentence)


def _words(code: ErrorCode, node: NodeClient, operation: str) -> str:
    if code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return code.name.lower()
    broker = "" if operation == "Describe" else " (a broker tells it without: ask one)"
    return f"{node.principal} needs an ACL for {operation} on the cluster{broker}"
