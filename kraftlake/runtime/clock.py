"""Clocks. Code that needs the time takes a clock as an argument, so that simulations and tests control the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock and monotonic time. Source: org.apache.kafka.common.utils.Time."""

    def milliseconds(self) -> int:
        """Wall-clock time, milliseconds since the epoch: for timestamps."""
        ...

    def nanoseconds(self) -> int:
        """Monotonic time in nanoseconds, with any origin: for deadlines and durations."""
        ...


class SystemClock:
    """The time of the machine."""

    def milliseconds(self) -> int:
        """Wall-clock time, milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def nanoseconds(self) -> int:
        """Monotonic time, in nanoseconds."""
        return time.monotonic_ns()


class ManualClock:
    """A clock that only `advance` changes, for simulations and tests."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ns = now_ms * 1_000_000

    def milliseconds(self) -> int:
        """The current time, in milliseconds."""
        return self._now_ns // 1_000_000

    def nanoseconds(self) -> int:
        """The current time, in nanoseconds."""
        return self._now_ns

    def advance(self, milliseconds: float) -> None:
        """Advance the time; raises ValueError for a negative duration."""
        if milliseconds < 0:
            raise ValueError(f"time can't go back by {-milliseconds} ms")
        self._now_ns += round(milliseconds * 1_000_000)
