"""The quorum of a cluster over the network: its leader and its high watermark.

Source: KIP-595 and KIP-836 (DescribeQuorum), KIP-919 (controllers answer clients too).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Self

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.describe import (
    checked_cluster_id,
    controller_in,
    describe_own_cluster,
    describe_quorum,
    refusal_words,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.leader_connection import LeaderConnection
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError, NoLeaderError, SilentNodeError


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
        self._leader = LeaderConnection(connect or NodeConnector(), self._check_cluster)
        self._named: list[Address] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connection."""
        self._leader.close()

    def describe(self) -> QuorumPosition:
        """Query the quorum. Raises NodeError with the error of each address, OtherClusterError.

        Raises NoLeaderError if a node of the cluster answered, but not this query, and AuthenticationError if no node
        accepted the client's certificate or login.
        """
        if self._leader.node is not None:
            with suppress(NodeError):
                return self._ask(self._leader.node)
            self.close()  # it may have been restarted, or lost the lead: begin anew
        return self._leader.ask(self._addresses, self._ask)

    def _ask(self, node: NodeClient) -> QuorumPosition:
        try:
            answer = describe_quorum(node)
        except SilentNodeError as fault:
            # A broker forwards the question, and waits for a controller that accepts it.
            raise NoLeaderError(str(fault)) from None
        code = answer.error
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE):
            reason = f"{node.address} is a controller that does not lead, and knows no leader."
            raise NoLeaderError(reason, self._named)
        if code != ErrorCode.NONE:
            raise NodeError(f"{node.address} does not describe its quorum: {refusal_words(code, node, 'Describe')}.")
        return QuorumPosition(
            leader_id=answer.leader.id, leader_epoch=answer.leader.epoch, high_watermark=answer.high_watermark
        )

    def _check_cluster(self, node: NodeClient) -> None:
        """Check the cluster id, and note the address of the leading controller if the node states it."""
        answer, _ = describe_own_cluster(node)
        self._cluster_id = checked_cluster_id(node, answer.cluster_id, self._cluster_id)
        self._named = controller_in(answer)
