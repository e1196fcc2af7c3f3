"""The clock of a window of a log. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from kraftlake.replay.log.delta_chunk import DeltaBoundaries


class WindowClock:
    """The times of a log's deltas within a window that never go back, in epoch ms.

    The time of a delta is the latest that a batch of the window had up to there: while a controller's clock is behind
    an earlier one, time stands still. What is before the window has its begin.
    """

    def __init__(self, begin: int | None, first: int | None) -> None:
        """Begin at a time, None for that of the first delta with one, with the deltas from the offset `first` on."""
        self.begin = begin
        self.back = 0
        """The longest way that a clock went back, in ms."""
        self._first = -1 if first is None else first
        self._now = -1 if begin is None else begin

    @property
    def now(self) -> int:
        """The latest time, -1 for none."""
        return self._now

    def take(self, boundaries: DeltaBoundaries) -> Any:
        """The times (int64) of deltas that follow the earlier ones; -1 for those before the window."""
        is_within = boundaries.offsets >= self._first
        raw = np.where(is_within, boundaries.times, -1)
        times = np.maximum.accumulate(np.append(self._now, raw))[1:]
        if len(times):
            self._now = int(times[-1])
            self.back = max(self.back, int((times - raw)[raw >= 0].max(initial=0)))
        if self.begin is None and self._now >= 0:
            self.begin = int(times[times >= 0][0])
        return np.where(is_within, times, -1)

    def end(self, time: int) -> None:
        """Go on to the time of the log's last batch, -1 for none."""
        self._now = max(self._now, time)
        if self.begin is None and self._now >= 0:
            self.begin = self._now
