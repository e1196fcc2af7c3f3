"""How many connections a second a listener takes (`max.connection.creation.rate`)."""

from __future__ import annotations

from typing import Final

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
