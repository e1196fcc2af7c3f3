"""Metrics over HTTP, in the text format of Prometheus."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from types import TracebackType

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.runtime.metrics import MetricsRegistry


class _Samples(Collector):
    """The samples as Prometheus metric families: one family for each name and set of tag keys."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[tuple[str, tuple[str, ...]], GaugeMetricFamily] = {}
        for sample in self._registry.samples():
            keys = tuple(key for key, _ in sample.name.tags)
            name = sample.name.prometheus_name
            family = families.get((name, keys))
            if family is None:
                family = families[name, keys] = GaugeMetricFamily(name, sample.description, labels=keys)
            family.add_metric([value for _, value in sample.name.tags], sample.value)
        yield from families.values()


class MetricsServer:
    """Serves a registry at `http://HOST:PORT/metrics` until `close`, on its own threads.

    Everyone who reaches the address can read the metrics, so an address that is not loopback is refused with UsageError
    unless `insecure`. Port 0 takes a free port. EnvironmentFaultError if the port is taken.
    """

    def __init__(
        self, registry: MetricsRegistry, *, host: str = "127.0.0.1", port: int = 0, insecure: bool = False
    ) -> None:
        if not insecure and not is_loopback(host):
            raise UsageError(
                f"Metrics are served without encryption or a password: {host} is not a loopback address, so ask for "
                "it with insecure."
            )
        prometheus = CollectorRegistry(auto_describe=False)
        prometheus.register(_Samples(registry))
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=prometheus)
        except OSError as fault:
            raise EnvironmentFaultError(f"Metrics can't be served at {host}:{port}: {fault.strerror}.") from fault
        self.host = host
        self.port: int = self._server.server_port

    @property
    def url(self) -> str:
        """The URL of the metrics."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> MetricsServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server at the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
