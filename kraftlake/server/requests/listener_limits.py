"""Limits of one listener."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import attrs

from kraftlake.server.node_config import NodeSettings
from kraftlake.settings.node_combinations import connections_by_host

_NO_LIMIT: Final = 2**31 - 1
_MEBIBYTE: Final = 1024 * 1024
_OF_EACH: Final = ("max.connections", "max.connection.creation.rate")
"""Limits that one listener may override. Source: kafka.network.ConnectionQuotas (ListenerConnectionQuota)."""


@attrs.frozen(kw_only=True)
class ListenerLimits:
    """Kafka's settings of a listener, with Kafka's names and defaults; a comment explains each other default.

    Kafka has no setting like `buffered_max_bytes`.

    Source: org.apache.kafka.network.SocketServerConfigs.
    """

    socket_request_max_bytes: int = 100 * _MEBIBYTE
    """The maximum length of a frame; a connection that announces a longer one is closed."""
    max_connections: int = _NO_LIMIT
    """The maximum number of open connections; more wait to be accepted."""
    max_connections_per_ip: int = _NO_LIMIT
    """The maximum number of connections of one address; more are closed at once."""
    max_connections_per_ip_overrides: Mapping[str, int] = attrs.field(factory=dict)
    """The same limit for single addresses, which take precedence."""
    max_connection_creation_rate: int = _NO_LIMIT
    """The maximum number of new connections a second; more wait to be accepted."""
    connections_max_idle_ms: int = 600_000
    """The time in ms within which a client sends the rest of a request, or reads some of an answer."""
    queued_max_requests: int = 500
    """The maximum number of requests that wait for a thread; at the maximum, no connection is read."""
    queued_max_request_bytes: int = 256 * _MEBIBYTE
    """The maximum size of requests that wait for a thread or are handled, beyond which no connection is read. Kafka has
    no such limit by default, and may run out of memory."""
    buffered_max_bytes: int = 256 * _MEBIBYTE
    """The maximum size of incomplete requests and unread answers; beyond it, the oldest is closed."""
    socket_listen_backlog_size: int = 1000
    """The maximum number of connections that the system queues for acceptance. With Kafka's 50, most of a thousand
    simultaneous clients are rejected and retry after a second: here, the accepting thread also does all other work."""
    socket_send_buffer_bytes: int = -1
    socket_receive_buffer_bytes: int = -1
    """The size of the system's buffer for one connection; −1 leaves the size to the system, which adapts it. Kafka's
    default is 100 KiB, which limits the throughput over long distances."""
    num_io_threads: int = 8
    """The number of threads that handle requests."""


def listener_limits(settings: NodeSettings, listener: str) -> ListenerLimits:
    """The limits of a listener by a node's validated settings.

    Of a limit for all listeners and one for this listener, the lower one applies.
    """
    values = {field: settings.value(name) for name, field in _FIELDS.items() if name in settings.values}
    for name in _OF_EACH:
        own = settings.value(f"listener.name.{listener.lower()}.{name}")
        values[_FIELDS[name]] = min(own, settings.value(name))
    if values.get("queued_max_request_bytes", 1) <= 0:  # without a limit of Kafka's own
        del values["queued_max_request_bytes"]
    if values.get("connections_max_idle_ms", 0) < 0:
        values["connections_max_idle_ms"] = _NO_LIMIT
    if "max_connections_per_ip_overrides" in values:
        values["max_connections_per_ip_overrides"] = _by_address(values["max_connections_per_ip_overrides"])
    limits = ListenerLimits(**values)
    return attrs.evolve(limits, buffered_max_bytes=max(limits.buffered_max_bytes, limits.socket_request_max_bytes))


def _by_address(overrides: str) -> dict[str, int]:
    """The maximum number of connections by the address of each host; hosts without an address are skipped."""
    found = dict[str, int]()
    for host, limit in connections_by_host(overrides).items():
        with suppress(OSError):
            found |= {str(address[4][0]): limit for address in socket.getaddrinfo(host, None)}
    return found


_FIELDS: Final = {
    field.name.replace("_", "."): field.name
    for field in attrs.fields(ListenerLimits)
    if field.name != "buffered_max_bytes"
}


_WINDOW_SECONDS: Final = 10.0
"""Kafka measures the rate over its last ten whole seconds."""


class ConnectionPace:
    """Admits `rate` connections a second; after a pause those of `_WINDOW_SECONDS` at once.

    Source: kafka.network.ConnectionQuotas (recordConnectionAndGetThrottleTimeMs).
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._admitted = rate * _WINDOW_SECONDS
        self._since: float | None = None

    def wait_seconds(self, now: float) -> float:
        """The time until the next connection is admitted, by a clock in seconds."""
        if self._since is not None:
            more = self._rate * (now - self._since)
            self._admitted = min(self._admitted + more, self._rate * _WINDOW_SECONDS)
        self._since = now
        missing = 1 - self._admitted
        return max(0.0, missing / self._rate) if self._rate else _WINDOW_SECONDS

    def count(self) -> None:
        """Take a connection."""
        self._admitted -= 1
