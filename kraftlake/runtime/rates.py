"""Rates over time windows, and token buckets, as Kafka's quotas measure them.

Pure: each method takes the time in ms, by a clock with any origin.

Source: org.apache.kafka.common.metrics.stats (SampledStat, WindowedSum, Rate, SimpleRate, TokenBucket).
"""

from __future__ import annotations

from typing import Final

import attrs

LONGEST_MS: Final = 2**31 - 1
"""The longest throttle time, in ms, that an answer has room for."""


@attrs.frozen(kw_only=True)
class Windows:
    """The windows of a rate: how many count, the current one included, and the length of each in ms."""

    number: int = 11
    length_ms: int = 1_000

    @classmethod
    def of_seconds(cls, number: int, seconds: int) -> Windows:
        """Return windows whose length is in seconds, as in Kafka's settings."""
        return cls(number=number, length_ms=seconds * 1_000)

    @property
    def total_ms(self) -> int:
        """The length of all windows."""
        return self.number * self.length_ms


class WindowedSum:
    """The sum of the values of the last windows.

    One more sample than there are windows is kept: a sample counts until its newest value is older than all windows,
    also where its window has begun before.
    """

    __slots__ = ("_current", "_last_ms", "_start_ms", "_values", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._values: list[float] = []
        self._start_ms: list[int] = []
        self._last_ms: list[int] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value to the current window."""
        if not self._values:
            self._reset(0, now_ms)
        elif now_ms - self._start_ms[self._current] >= self.windows.length_ms:
            self._current = (self._current + 1) % (self.windows.number + 1)
            self._reset(self._current, now_ms)
        self._values[self._current] += value
        self._last_ms[self._current] = now_ms

    def measure(self, now_ms: int) -> float:
        """Return the sum."""
        self._forget_old(now_ms)
        return sum(self._values)

    def elapsed_ms(self, now_ms: int) -> int:
        """Return the time since the oldest window began."""
        self._forget_old(now_ms)
        if not self._values:
            self._reset(0, now_ms)
        return now_ms - min(self._start_ms)

    def _reset(self, place: int, now_ms: int) -> None:
        if place == len(self._values):
            self._values.append(0.0)
            self._start_ms.append(now_ms)
            self._last_ms.append(now_ms)
        else:
            self._values[place], self._start_ms[place], self._last_ms[place] = 0.0, now_ms, now_ms

    def _forget_old(self, now_ms: int) -> None:
        newest_forgotten = now_ms - self.windows.total_ms
        if self._last_ms and min(self._last_ms) <= newest_forgotten:
            for place, last_ms in enumerate(self._last_ms):
                if last_ms <= newest_forgotten:
                    self._reset(place, now_ms)


class Rate(WindowedSum):
    """A rate per second; windows that have not begun yet count as empty ones, so that a short burst is allowed."""

    __slots__ = ()

    def window_ms(self, now_ms: int) -> int:
        """Return the time over which the rate is measured, 1 ms at least."""
        elapsed_ms, windows = self.elapsed_ms(now_ms), self.windows
        missing = windows.number - 1 - elapsed_ms // windows.length_ms
        return max(elapsed_ms + max(missing, 0) * windows.length_ms, 1)

    def per_second(self, now_ms: int) -> float:
        """Return the rate."""
        total = self.measure(now_ms)
        return total / (self.window_ms(now_ms) / 1_000)

    def wait_ms(self, bound: float, now_ms: int) -> int:
        """Return the time in ms after which the rate is back at `bound` if nothing is recorded; 0 if it is not above.

        Source: org.apache.kafka.server.quota.QuotaUtils (throttleTime).
        """
        rate = self.per_second(now_ms)
        return _rounded_ms(rate - bound, bound, self.window_ms(now_ms)) if rate > bound else 0


class SimpleRate(WindowedSum):
    """A rate per second since the oldest window began, and at least over the length of one window."""

    __slots__ = ()

    def per_second(self, now_ms: int) -> float:
        """Return the rate."""
        total = self.measure(now_ms)
        return total / (max(self.elapsed_ms(now_ms), self.windows.length_ms) / 1_000)


class TokenBucket:
    """Tokens that come at the rate of a quota, of which all windows' worth is kept; a bucket is full at first."""

    __slots__ = ("_tokens", "_updated_ms", "windows")

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def tokens(self, per_second: float, now_ms: int) -> float:
        """Return the number of tokens; below 0 if more were taken than there were."""
        burst = self.windows.total_ms / 1_000 * per_second
        if self._updated_ms is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + per_second * ((now_ms - self._updated_ms) / 1_000))
        self._updated_ms = now_ms
        return self._tokens

    def take(self, number: float, per_second: float, now_ms: int) -> None:
        """Take tokens, more than there are if need be; a negative number gives them back."""
        burst = self.windows.total_ms / 1_000 * per_second
        self._tokens = min(burst, self.tokens(per_second, now_ms) - number)

    def wait_ms(self, per_second: float, now_ms: int) -> int:
        """Return the time in ms after which the bucket is no longer below 0."""
        tokens = self.tokens(per_second, now_ms)
        return _rounded_ms(-tokens, per_second, 1_000) if tokens < 0 else 0


def _rounded_ms(excess: float, rate: float, factor: int) -> int:
    """Return `excess / rate * factor` in whole ms, rounded as by Java, and at most LONGEST_MS.

    In Kafka a longer time overflows, so that it may become negative and throttle nobody.
    """
    milliseconds = excess / rate * factor if rate > 0 else LONGEST_MS
    return LONGEST_MS if milliseconds >= LONGEST_MS else int(milliseconds + 0.5)
