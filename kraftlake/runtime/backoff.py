"""Delays between attempts."""

from __future__ import annotations

import math

import attrs


@attrs.frozen(kw_only=True)
class Backoff:
    """Pauses in seconds that begin at `base` and grow by `factor` with each failure, up to `cap`.

    `jitter` (0 to 1) is the maximum share by which a pause is shortened or extended, so that clients that failed
    together do not retry together. Source: org.apache.kafka.common.utils.ExponentialBackoff.
    """

    base: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.2

    def __attrs_post_init__(self) -> None:
        assert 0 < self.base <= self.cap, "a pause has a length"
        assert self.factor > 1, "pauses grow"
        assert 0 <= self.jitter < 1, "a pause does not vanish"

    def pause(self, failures: int, random: float) -> float:
        """The pause after `failures` consecutive failures (1 or more).

        `random` is from 0 to 1, and 0.5 means no jitter.
        """
        growths = min(failures - 1, math.log(self.cap / self.base, self.factor))
        pause: float = self.base * self.factor**growths
        return min(self.cap, pause * (1 + self.jitter * (2 * random - 1)))
