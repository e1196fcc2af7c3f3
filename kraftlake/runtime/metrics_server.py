"""Metrics over HTTP, in the text format of Prometheus, and the health of the process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.runtime.health import Health, Why
from kraftlake.runtime.log import get_logger
from kraftlake.runtime.metrics import MetricsRegistry
from kraftlake.runtime.metrics_address import MetricsAddress

_AT_ONCE: Final = 8
"""The maximum number of concurrent connections; each has a thread."""
_SECONDS: Final = 10.0
"""The maximum duration of a connection, from its beginning to the end of the answer."""
_BUSY: Final = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


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


class _Handler(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Log no requests."""


class _Server(ThreadingMixIn, WSGIServer):
    """Refuses connections while `_AT_ONCE` are open, and ends each after `_SECONDS`, whatever its client does."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        self.address_family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        self._open: dict[Any, float] = {}
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]  # text and a number, for either family

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection in a thread."""
        if len(self._open) >= _AT_ONCE:
            with suppress(OSError):
                request.send(_BUSY)
            self.shutdown_request(request)
            return
        self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, at the end of its thread."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Close connections that have exceeded their time; called twice a second, and with each connection."""
        for request, begun in list(self._open.items()):
            if time.monotonic() - begun > _SECONDS:
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)  # which ends the wait of its thread

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log a client that disconnected or was cut off, which is no fault of the server."""
        get_logger(__name__).debug("metrics_cut_off", client=str(client_address))


class MetricsServer:
    """Serves a registry at `http://HOST:PORT/metrics` until `close`, on its own threads.

    `/healthz` and `/readyz` answer 200, or 503 and one line why not. At most eight connections are served at a time,
    each for at most ten seconds; more are answered with 503. The metrics are readable by every client that reaches the
    address, so an address other than loopback is refused with UsageError unless `insecure`. Port 0 selects a free port.
    Raises EnvironmentFaultError if the port is taken.
    """

    def __init__(
        self,
        registry: MetricsRegistry,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        insecure: bool = False,
        health: Health | None = None,
    ) -> None:
        if MetricsAddress(host=host, port=port, insecure=insecure).is_exposed:
            raise UsageError(
                f"Metrics are served without encryption or a password: {host} is not a loopback address, so ask for "
                "it with insecure."
            )
        prometheus = CollectorRegistry(auto_describe=False)
        prometheus.register(_Samples(registry))
        ProcessCollector(registry=prometheus)
        try:
            self._server = _Server(host, port)
        except OSError as fault:
            raise EnvironmentFaultError(f"Metrics can't be served at {host}:{port}: {fault.strerror}.") from fault
        self._server.set_app(_routed(make_wsgi_app(prometheus), health or Health()))
        self._thread = threading.Thread(target=self._server.serve_forever, name="kraftlake-metrics", daemon=True)
        self._thread.start()
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


@contextmanager
def served(registry: MetricsRegistry, address: MetricsAddress | None, health: Health) -> Iterator[str | None]:
    """Serve metrics within the context, and yield their URL; None without an address. Raises as MetricsServer."""
    if address is None:
        yield None
        return
    with MetricsServer(
        registry, host=address.host, port=address.port, insecure=address.insecure, health=health
    ) as server:
        yield server.url


_Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def _routed(metrics: _Application, health: Health) -> _Application:
    """The application that answers `/metrics`, `/healthz` and `/readyz`, and nothing else."""

    def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        why = {"/healthz": health.dead, "/readyz": health.unready}.get(path)
        if why is not None:
            status, line = _status_of(why)
        elif path in ("/metrics", "/"):
            return metrics(environ, start_response)
        else:
            status, line = "404 Not Found", "There are /metrics, /healthz and /readyz."
        body = f"{line}\n".encode()
        start_response(status, [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))])
        return [body]

    return answer


def _status_of(why: Why) -> tuple[str, str]:
    """The HTTP status and the line for an answer on health; a question that fails is a fault itself."""
    try:
        reason = why()
    except Exception as fault:
        get_logger(__name__).error("health_failed", cause=f"{type(fault).__name__}: {fault}")
        reason = f"the health is not known: {type(fault).__name__}"
    return ("200 OK", "ok") if reason is None else ("503 Service Unavailable", " ".join(reason.split()))
