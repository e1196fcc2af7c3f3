"""Metrics under Kafka's names: gauges that are read on request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import attrs

from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

Tags = tuple[tuple[str, str], ...]


@attrs.frozen
class MetricName:
    """The JMX name of a metric: `group:type=…,name=…,tag=…`.

    Source: com.yammer.metrics.core.MetricName, org.apache.kafka.common.MetricName.
    """

    group: str
    type: str
    name: str
    tags: Tags = ()

    def __str__(self) -> str:
        tags = "".join(f",{key}={value}" for key, value in self.tags)
        return f"{self.group}:type={self.type},name={self.name}{tags}"

    @property
    def prometheus_name(self) -> str:
        """The name in Kafka's usual JMX exporter: lower case, with underscores."""
        parts = f"{self.group}_{self.type}_{self.name}".lower()
        return "".join(c if c.isalnum() else "_" for c in parts)


@attrs.frozen
class Sample:
    """The current value of a metric; `description` is one line of text."""

    name: MetricName
    value: float
    description: str


Gauge = Callable[[], float | Mapping[Tags, float]]
"""Returns a value, or values by tags."""


class MetricsRegistry:
    """The metrics of a process, for any thread; gauges read the values of their owners without a lock.

    Source: com.yammer.metrics.core.MetricsRegistry.
    """

    def __init__(self) -> None:
        self._gauges: dict[MetricName, tuple[Gauge, str]] = {}
        self._lock = threading.Lock()

    def gauge(self, name: MetricName, description: str, read: Gauge) -> None:
        """Register the gauge `read` under `name`; raises ValueError if the name is taken."""
        with self._lock:
            if name in self._gauges:
                raise ValueError(f"there is a metric {name} already")
            self._gauges[name] = (read, description)

    def samples(self) -> list[Sample]:
        """All values, sorted by name; a gauge that raises is logged and omitted."""
        with self._lock:
            gauges = sorted(self._gauges.items(), key=lambda item: str(item[0]))
        samples: list[Sample] = []
        for name, (read, description) in gauges:
            try:
                value = read()
                values = sorted(value.items()) if isinstance(value, Mapping) else [((), value)]
            except Exception as fault:  # a fault of one owner must not hide the other metrics
                _log.error("gauge_failed", metric=str(name), cause=f"{type(fault).__name__}: {fault}")
                continue
            samples += [Sample(attrs.evolve(name, tags=(*name.tags, *tags)), at, description) for tags, at in values]
        return samples

    def value(self, text: str) -> float:
        """The value of the metric with that full name; raises KeyError for an unknown name."""
        values = {str(sample.name): sample.value for sample in self.samples()}
        return values[text]
