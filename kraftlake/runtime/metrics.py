"""Metrics under Kafka's names: gauges that are read when somebody asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import attrs

from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

Tags = tuple[tuple[str, str], ...]


@attrs.frozen
class MetricName:
    """A metric as JMX has it: `group:type=…,name=…,tag=…`; `attribute` for those that are attributes of their bean.

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
        """What Kafka's usual JMX exporter makes of it: all in lower case, with underscores."""
        parts = f"{self.group}_{self.type}_{self.name}".lower()
        return "".join(c if c.isalnum() else "_" for c in parts)


@attrs.frozen
class Sample:
    """A metric's value at the time of asking; `description` is one line for people."""

    name: MetricName
    value: float
    description: str


Gauge = Callable[[], float | Mapping[Tags, float]]
"""Reads a value, or the values by tags where there is one for each of something."""


class MetricsRegistry:
    """The metrics of a process. Any thread may ask; each gauge reads what its owner has set, without a lock.

    Source: com.yammer.metrics.core.MetricsRegistry.
    """

    def __init__(self) -> None:
        self._gauges: dict[MetricName, tuple[Gauge, str]] = {}
        self._lock = threading.Lock()

    def gauge(self, name: MetricName, description: str, read: Gauge) -> None:
        """Show what `read` gives under `name`; ValueError when the name is taken."""
        with self._lock:
            if name in self._gauges:
                raise ValueError(f"there is a metric {name} already")
            self._gauges[name] = (read, description)

    def samples(self) -> list[Sample]:
        """All values, by name; a gauge that raises is logged and left out."""
        with self._lock:
            gauges = sorted(self._gauges.items(), key=lambda item: str(item[0]))
        samples: list[Sample] = []
        for name, (read, description) in gauges:
            try:
                value = read()
                values = sorted(value.items()) if isinstance(value, Mapping) else [((), value)]
            except Exception as fault:  # the owner may be changing what it reads: the others are shown
                _log.error("gauge_failed", metric=str(name), cause=f"{type(fault).__name__}: {fault}")
                continue
            samples += [Sample(attrs.evolve(name, tags=(*name.tags, *tags)), at, description) for tags, at in values]
        return samples

    def value(self, text: str) -> float:
        """The value of the metric whose name reads so; KeyError when there is none."""
        values = {str(sample.name): sample.value for sample in self.samples()}
        return values[text]
