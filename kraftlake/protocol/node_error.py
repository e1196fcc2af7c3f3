"""Errors between a client and a node."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.protocol.address import Address
from kraftlake.runtime.errors import KraftlakeError


class NodeError(KraftlakeError):
    """A node that can't be reached, is no Kafka node, or answers with an error; the message names its address."""


class SilentNodeError(NodeError):
    """A node that accepted the connection and did not answer in time."""


class ClosedConnectionError(NodeError):
    """A connection that ended in place of an answer."""


class NotListeningError(NodeError):
    """A host that refuses connections to a port: no process listens on it."""


class AuthenticationError(NodeError):
    """A node whose certificate is not trusted, or that refuses the client's; another configuration is needed."""


class NoLeaderError(NodeError):
    """Reports that nodes of the cluster answered, but no leader: an election may be in progress.

    `leader` has the address of the leader that a node names, if any.
    """

    def __init__(self, message: str, leader: Sequence[Address] = ()) -> None:
        super().__init__(message)
        self.leader = leader


class OlderLeaderError(NoLeaderError):
    """Reports that all nodes that answer name a leader of an earlier epoch than the known one."""
