"""Errors between a client and a node."""

from __future__ import annotations

from kraftlake.runtime.errors import KraftlakeError


class NodeError(KraftlakeError):
    """A node that can't be reached, is no Kafka node, or answers with an error; the message names its address."""


class SilentNodeError(NodeError):
    """A node that accepted the connection and did not answer in time."""


class ClosedConnectionError(NodeError):
    """A connection that ended in place of an answer."""


class AuthenticationError(NodeError):
    """A node whose certificate is not trusted, or that refuses the client's; another configuration is needed."""
