"""Time, passed in: what reads a clock takes it as an argument, so that a simulator can turn the hands."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings of time, as org.apache.kafka.common.utils.Time has them."""

    def milliseconds(self) -> int:
        """Wall-clock time, milliseconds since the epoch: for what is written down."""
        ...

    def nanoseconds(self) -> int:
        """A reading that never goes back, in nanoseconds from anywhere: for deadlines and durations."""
        ...


class SystemClock:
    """The machine's own time."""

    def milliseconds(self) -> int:
        """Wall-clock time, milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def nanoseconds(self) -> int:
        """A monotonic reading, in nanoseconds."""
        return time.monotonic_ns()


class ManualClock:
    """Time that stands still until `advance` is called: for simulations and tests."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ns = now_ms * 1_000_000

    def milliseconds(self) -> int:
        """The time that was set, in milliseconds."""
        return self._now_ns // 1_000_000

    def nanoseconds(self) -> int:
        """The time that was set, in nanoseconds."""
        return self._now_ns

    def advance(self, milliseconds: float) -> None:
        """Let time pass; ValueError for less than nothing."""
        if milliseconds < 0:
            raise ValueError(f"time can't go back by {-milliseconds} ms")
        self._now_ns += round(milliseconds * 1_000_000)
