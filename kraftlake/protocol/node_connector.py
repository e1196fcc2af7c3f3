"""Opens connections to nodes, as a client's configuration says."""

from __future__ import annotations

import attrs

from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.connection import MAX_RESPONSE_BYTES, Connection
from kraftlake.protocol.node_client import NodeClient
from kraftlake.runtime.clock import Clock, SystemClock


@attrs.frozen(kw_only=True)
class NodeConnector:
    """Makes a client of the node at an address: connected, and secured as `config` says.

    `timeout` (seconds) bounds the connecting and each exchange; `max_response_bytes` what a node may answer.
    """

    config: ClientConfig = attrs.field(factory=ClientConfig)
    timeout: float = 5.0
    max_response_bytes: int = MAX_RESPONSE_BYTES
    clock: Clock = attrs.field(factory=SystemClock)

    def __call__(self, address: Address) -> NodeClient:
        """A client of the node at `address`. Raises NodeError."""
        connection = Connection(
            address, timeout=self.timeout, max_response_bytes=self.max_response_bytes, clock=self.clock
        )
        return NodeClient(connection, client_id=self.config.client_id)
