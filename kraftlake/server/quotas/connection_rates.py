"""Rates at which addresses create connections. Pure: the time is passed in.

Source: kafka.network.ConnectionQuotas (recordIpConnectionMaybeThrottle).
"""

from __future__ import annotations

from threading import Lock
from typing import Final

from kraftlake.publisher.client_quotas import ClientQuotas
from kraftlake.runtime.rates import Rate, Windows
from kraftlake.server.quotas.sensors import Sensors


class ConnectionRates:
    """The connections of each address to a node's listeners within the last windows. Thread-safe."""

    def __init__(self, quotas: ClientQuotas, windows: Windows) -> None:
        self._quotas = quotas
        self._lock = Lock()
        self._longest_ms: Final = windows.length_ms
        self._sensors = Sensors[str, Rate](lambda: Rate(windows))

    def record(self, address: str, now_ms: int) -> int:
        """Count a new connection, and return 0; or the time in ms after which to close it, if it is one too many."""
        if not self._quotas.limits_connections:
            return 0
        limit = self._quotas.connection_rate(address)
        if limit is None:
            return 0
        with self._lock:
            rate = self._sensors.get(address, now_ms)
            rate.record(1, now_ms)
            wait_ms = min(rate.wait_ms(limit, now_ms), self._longest_ms)
            if wait_ms > 0:
                rate.record(-1, now_ms)
            return wait_ms
