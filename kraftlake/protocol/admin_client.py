"""A client of a cluster's administrative requests, over its brokers or its controllers.

Source: org.apache.kafka.clients.admin.KafkaAdminClient, KIP-919 (controllers answer clients too).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.describe import (
    checked_cluster_id,
    controller_in,
    describe_own_cluster,
)
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.leader_connection import LeaderConnection
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_error import NoLeaderError
from kraftlake.runtime.errors import KraftlakeError

_DENIED: Final = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)
_NOT_NOW: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""The errors after which the same request may succeed: of a node that does not lead, or a cluster that is busy."""


@attrs.frozen
class Answer:
    """The answer to a request: an error, or none, and its reason."""

    error: int
    name: str
    message: str | None = None

    @classmethod
    def of(cls, code: Any, message: str | None = None) -> Answer:
        """The answer with one of kio's error codes."""
        return cls(int(code), str(code.name).upper(), message)

    @property
    def is_failure(self) -> bool:
        """Whether the request was refused."""
        return self.error != ErrorCode.NONE

    @property
    def is_denied(self) -> bool:
        """Whether the client lacks the right."""
        return self.error in _DENIED


class MissingRightError(KraftlakeError):
    """Reports a right that the client's principal lacks; another question to the same cluster has the same answer."""


class AdminClient:
    """Sends requests to a cluster, for one thread: to any broker, or to the controller that leads.

    `addresses` are of brokers or of controllers; `over_controllers` is known once a node has answered. Each new
    connection is checked against `cluster_id`, or the cluster of the first node that answers.
    """

    def __init__(
        self, addresses: Sequence[Address], *, connect: Callable[[Address], NodeClient], cluster_id: str | None = None
    ) -> None:
        self._addresses = list(addresses)
        self.cluster_id = cluster_id
        """The id of the cluster; None before the first answer, unless it was given."""
        self.over_controllers = False
        self.principal = ""
        """The client's principal, for messages."""
        self._connect = connect
        self._leader = LeaderConnection(connect, self._check)
        self._named: list[Address] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the open connection."""
        self._leader.close()

    def ask(
        self, api: str, versions: range, make: Callable[[Any], Any], answer_of: Callable[[Any], Answer] | None = None
    ) -> Any:
        """The response to a request, in kio's class; `make` as for `NodeClient.ask`.

        `answer_of` finds the error in a response: one of a node that does not lead, or can't answer now, leads to the
        next node. Raises NodeError with the error of each node.
        """

        def ask(node: NodeClient) -> Any:
            response = node.ask(api, versions, make)
            answer = None if answer_of is None else answer_of(response)
            if answer is not None and answer.error in _NOT_NOW:
                why = f": {answer.message}" if answer.message else ""
                raise NoLeaderError(f"{node.address} answers {answer.name}{why}.", self._named)
            return response

        return self._leader.ask([*self._named, *self._addresses], ask)

    def offers(self, api: str, versions: range) -> bool:
        """Whether the node that is asked offers an API. Raises NodeError."""
        found: bool = self._leader.ask(self._addresses, lambda node: node.offers(api, versions))
        return found

    def prepare(self) -> None:
        """Connect to a node, which is checked. Raises NodeError, OtherClusterError."""
        self._leader.ask(self._addresses, lambda node: node.address)

    def ask_node(self, address: Address, api: str, versions: range, make: Callable[[Any], Any]) -> Any:
        """The response of one node. Raises NodeError."""
        with self._connect(address) as node:
            self._check(node)
            return node.ask(api, versions, make)

    def _check(self, node: NodeClient) -> None:
        """Check the cluster id, and note the leading controller if the node is one."""
        answer, self.over_controllers = describe_own_cluster(node)
        self.cluster_id = checked_cluster_id(node, answer.cluster_id, self.cluster_id)
        self.principal = node.principal
        self._named = controller_in(answer) if self.over_controllers else []
