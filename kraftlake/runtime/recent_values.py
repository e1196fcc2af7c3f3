"""The newest of many values, and their quantiles: a histogram for metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from kraftlake.runtime.metrics import Tags

KEPT = 1028
QUANTILES = (0.5, 0.95, 0.99, 0.999)


class RecentValues:
    """One thread adds, any may ask. The last 1028 values are kept: as many as in a histogram of Kafka's.

    Source: com.yammer.metrics.core.Histogram.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=KEPT)
        self.count = 0

    def add(self, value: float) -> None:
        """Take a value in; the oldest goes where there are too many."""
        self._values.append(value)
        self.count += 1

    def quantiles(self) -> Mapping[Tags, float]:
        """The values below which half, 95, 99 and 99.9 % of those kept lie, tagged as Prometheus does; 0 for none."""
        values = sorted(self._values.copy())
        last = len(values) - 1
        return {(("quantile", str(part)),): values[round(part * last)] if values else 0.0 for part in QUANTILES}
