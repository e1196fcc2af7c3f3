"""The share of time that an activity takes."""

from __future__ import annotations

import threading


class TimeRatio:
    """Sums recorded durations; `measure` returns their share of the time and restarts the sum.

    The time runs from the last recording before the previous `measure` (or from the first recording, which only marks
    the start) to the newest one. Without a recording in between, the share is `default`. Thread-safe. Source:
    org.apache.kafka.server.metrics.TimeRatio.
    """

    def __init__(self, default: float) -> None:
        assert 0 <= default <= 1, "a share"
        self._default = default
        self._lock = threading.Lock()
        self._from_ns: int | None = None
        self._to_ns: int | None = None
        self._total_ns = 0

    def record(self, duration_ns: int, now_ns: int) -> None:
        """Add a duration that ended at `now_ns`."""
        with self._lock:
            if self._from_ns is None:
                self._from_ns = now_ns
            else:
                self._total_ns += duration_ns
                self._to_ns = now_ns

    def measure(self) -> float:
        """The share, 0 to 1, since the previous call."""
        with self._lock:
            if self._from_ns is None or self._to_ns is None:
                return self._default
            interval_ns, total_ns = self._to_ns - self._from_ns, self._total_ns
            self._from_ns, self._total_ns = self._to_ns, 0
            return self._default if interval_ns <= 0 else min(1.0, total_ns / interval_ns)
