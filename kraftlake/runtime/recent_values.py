"""The most recent values of a series, and their quantiles: a histogram for metrics."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from kraftlake.runtime.metrics import Tags

KEPT = 1028
QUANTILES = (0.5, 0.95, 0.99, 0.999)


class RecentValues:
    """The last 1028 values, as in Kafka's histograms; one thread adds values, any thread may read.

    Source: com.yammer.metrics.core.Histogram.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=KEPT)
        self.count = 0

    def add(self, value: float) -> None:
        """Add a value, in place of the oldest one if there are 1028."""
        self._values.append(value)
        self.count += 1

    def quantiles(self) -> Mapping[Tags, float]:
        """The quantiles 0.5, 0.95, 0.99 and 0.999 of the kept values, tagged as in Prometheus; 0 without values."""
        values = sorted(self._values.copy())
        last = len(values) - 1
        return {(("quantile", str(part)),): values[round(part * last)] if values else 0.0 for part in QUANTILES}
