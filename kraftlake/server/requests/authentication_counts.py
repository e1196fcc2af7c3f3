"""Counts of the logins at a listener, and their metrics. Source: org.apache.kafka.common.network.Selector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags


@attrs.define
class AuthenticationCounts:
    """Connections, by the outcome of their TLS handshake with login, and later logins of connections."""

    successful: int = 0
    failed: int = 0
    reauthenticated: int = 0
    failed_again: int = 0
    expired: int = 0
    """Connections that were closed, as they sent a request after the end of their session."""


_METRICS: Final[Sequence[tuple[str, str, str, Callable[[AuthenticationCounts], int]]]] = (
    ("socket-server-metrics", "successful-authentication-total", "Connections that have shown who they are.",
     lambda counts: counts.successful),
    ("socket-server-metrics", "failed-authentication-total", "Connections whose TLS handshake or login has failed.",
     lambda counts: counts.failed),
    ("socket-server-metrics", "successful-reauthentication-total", "Sessions that were renewed by a login.",
     lambda counts: counts.reauthenticated),
    ("socket-server-metrics", "failed-reauthentication-total", "Sessions that ended by a failed login.",
     lambda counts: counts.failed_again),
    ("socket-server-metrics", "expired-connections-killed-count", "Connections that outlived their session.",
     lambda counts: counts.expired),
)  # fmt: skip


def register_authentications(registry: MetricsRegistry, counts: Callable[[], dict[str, AuthenticationCounts]]) -> None:
    """Register the metrics of all listeners of a node; `counts` returns the counts by listener name."""
    for kind, name, description, read in _METRICS:

        def gauge(read: Callable[[AuthenticationCounts], int] = read) -> dict[Tags, float]:
            return {(("listener", listener),): read(one) for listener, one in counts().items()}

        registry.gauge(MetricName("kafka.server", kind, name), description, gauge)
