"""How much of the time something took, as a share of all time since it was last asked."""

from __future__ import annotations

import threading


class TimeRatio:
    """Durations are recorded by whoever spends the time; `measure` gives their share, and begins anew.

    The share is that of the time between the last recording before the last `measure` (or the first recording, which
    only marks the beginning) and the newest one. Where nothing was recorded in between it is `default`. Any thread may
    ask. Source: org.apache.kafka.server.metrics.TimeRatio.
    """

    def __init__(self, default: float) -> None:
        assert 0 <= default <= 1, "a share"
        self._default = default
        self._lock = threading.Lock()
        self._from_ns: int | None = None
        self._to_ns: int | None = None
        self._total_ns = 0

    def record(self, duration_ns: int, now_ns: int) -> None:
        """`duration_ns` were spent up to `now_ns`."""
        with self._lock:
            if self._from_ns is None:
                self._from_ns = now_ns
            else:
                self._total_ns += duration_ns
                self._to_ns = now_ns

    def measure(self) -> float:
        """The share, 0 to 1, since it was last measured."""
        with self._lock:
            if self._from_ns is None or self._to_ns is None:
                return self._default
            interval_ns, total_ns = self._to_ns - self._from_ns, self._total_ns
            self._from_ns, self._total_ns = self._to_ns, 0
            return self._default if interval_ns <= 0 else min(1.0, total_ns / interval_ns)
