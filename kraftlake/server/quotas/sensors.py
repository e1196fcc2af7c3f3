"""The measurements of many clients, bounded in number and in age.

Source: org.apache.kafka.common.metrics.Metrics (ExpireSensorTask).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")

_EXPIRES_MS: Final = 3_600_000
MOST_SENSORS: Final = 10_000
"""The maximum number of clients that are measured for one quota; beyond it, the longest unused one starts anew."""


class Sensors(Generic[K, T]):
    """One sensor per key, which `make` creates at its first use; a sensor that is unused for an hour is dropped.

    The caller holds a lock.
    """

    def __init__(self, make: Callable[[], T], *, most: int = MOST_SENSORS) -> None:
        self._make = make
        self._most = most
        self._sensors: dict[K, tuple[T, int]] = {}  # with the time of the last use; the longest unused one first

    def __len__(self) -> int:
        return len(self._sensors)

    def get(self, key: K, now_ms: int) -> T:
        """Return the sensor of a key for use at a time in ms."""
        found = self._sensors.pop(key, None)
        if found is not None and found[1] > now_ms - _EXPIRES_MS:
            sensor = found[0]
        else:
            sensor = self._make()
            self._drop_old(now_ms)
        self._sensors[key] = sensor, now_ms
        return sensor

    def newest(self, most: int) -> Iterator[tuple[K, T]]:
        """Yield the most recently used sensors."""
        for key in list(reversed(self._sensors))[:most]:
            yield key, self._sensors[key][0]

    def _drop_old(self, now_ms: int) -> None:
        """Drop expired sensors, and another one if there is no room for a new one."""
        while self._sensors:
            oldest = next(iter(self._sensors))
            if len(self._sensors) < self._most and self._sensors[oldest][1] > now_ms - _EXPIRES_MS:
                return
            del self._sensors[oldest]
