"""The metrics of client quotas, under Kafka's names; the labels are the user and the client id that the quota is of.

Source: org.apache.kafka.server.quota.ClientQuotaManager (clientQuotaMetricName, throttleMetricName) and its subclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kraftlake.runtime.metrics import MetricName, MetricsRegistry, Tags
from kraftlake.server.quotas.client_quota_manager import Client
from kraftlake.server.quotas.quota_managers import QuotaManagers

_THROTTLED: Final = "The average throttle time of a client's answers, ms."


def register_broker_quotas(registry: MetricsRegistry, managers: QuotaManagers) -> None:
    """Register the metrics of what a broker's clients use."""
    for kind, manager in (("Produce", managers.produce), ("Fetch", managers.fetch)):
        _register(registry, managers, f"{kind}/byte-rate", "Bytes a second of clients.", manager.rates)
        _register(registry, managers, f"{kind}/throttle-time", _THROTTLED, manager.throttle_times)
    _register_requests(registry, managers)


def register_controller_quotas(registry: MetricsRegistry, managers: QuotaManagers) -> None:
    """Register the metrics of what a controller's clients, and those of forwarded requests, use."""
    kind, manager = "ControllerMutation", managers.mutation
    _register(registry, managers, f"{kind}/mutation-rate", "Partitions created and deleted a second.", manager.rates)
    _register(
        registry, managers, f"{kind}/tokens", "Partitions that may be created or deleted at once.", manager.tokens
    )
    _register(registry, managers, f"{kind}/throttle-time", _THROTTLED, manager.throttle_times)
    _register_requests(registry, managers)


def _register_requests(registry: MetricsRegistry, managers: QuotaManagers) -> None:
    kind, manager = "Request", managers.request
    _register(
        registry, managers, f"{kind}/request-time", "Percent of a handler thread's time of clients.", manager.rates
    )
    _register(registry, managers, f"{kind}/throttle-time", _THROTTLED, manager.throttle_times)
    registry.gauge(
        MetricName("kafka.server", kind, "exempt-request-time"),
        "Percent of a handler thread's time of requests without a quota.",
        lambda: managers.exempt_percentage(managers.now_ms),
    )


def _register(
    registry: MetricsRegistry,
    managers: QuotaManagers,
    name: str,
    description: str,
    read: Callable[[int], Mapping[Client, float]],
) -> None:
    def values() -> dict[Tags, float]:
        return {
            (("user", user), ("client_id", client_id)): value
            for (user, client_id), value in read(managers.now_ms).items()
        }

    kind, _, attribute = name.partition("/")
    registry.gauge(MetricName("kafka.server", kind, attribute), description, values)
