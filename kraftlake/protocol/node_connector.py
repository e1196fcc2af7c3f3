"""Opens connections to nodes by a client configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from kraftlake.protocol.abort import Abort
from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig, read_client_config
from kraftlake.protocol.connection import MAX_RESPONSE_BYTES, Connection
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.tls import Tls, open_stores
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import UsageError


@attrs.frozen(kw_only=True)
class NodeConnector:
    """Creates a client of the node at an address: connected, and secured by `config`.

    `timeout` (seconds, by default that of `config`) bounds the connect and each exchange, `max_response_bytes` the size
    of an answer. The certificates are read here, once; a token is read for each connection. Raises UsageError if the
    stores of `config` are unusable.
    """

    config: ClientConfig = attrs.field(factory=ClientConfig)
    timeout: float = attrs.field(default=attrs.Factory(lambda self: self.config.timeout, takes_self=True))
    max_response_bytes: int = MAX_RESPONSE_BYTES
    clock: Clock = attrs.field(factory=SystemClock)
    _tls: Tls | None = attrs.field(
        init=False, repr=False, eq=False, default=attrs.Factory(lambda self: _open_stores(self.config), takes_self=True)
    )

    def __call__(self, address: Address, *, abort: Abort | None = None) -> NodeClient:
        """Return a client of the node at `address`; another thread can end its calls by `abort`.

        Raises NodeError, AuthenticationError for refused certificates.
        """
        connection = Connection(
            address,
            timeout=self.timeout,
            tls=self._tls,
            max_response_bytes=self.max_response_bytes,
            clock=self.clock,
            abort=abort,
        )
        return NodeClient(connection, config=self.config, clock=self.clock)


def connector_of(command_config: str | Path | None, *, warn: Callable[[str], None]) -> NodeConnector:
    """Return a connector configured by a properties file (None: PLAINTEXT); `warn` gets its warnings, in sentences.

    Raises UsageError naming the file and the key at fault.
    """
    config = ClientConfig() if command_config is None else read_client_config(command_config)
    for warning in config.warnings:
        warn(warning)
    return NodeConnector(config=config)


def _open_stores(config: ClientConfig) -> Tls | None:
    if config.tls is None:
        return None
    try:
        return open_stores(config.tls)
    except UsageError as fault:
        raise UsageError(f"{config.file}: {fault}" if config.file else str(fault)) from None
