from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from kraftlake.runtime import metrics_server
from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.runtime.health import Health
from kraftlake.runtime.metrics import MetricName, MetricsRegistry
from kraftlake.runtime.metrics_server import MetricsServer
from tests.at_least_one import at_least_one
from tests.waiting import PATIENCE, wait_for


def registry() -> MetricsRegistry:
    made = MetricsRegistry()
    made.gauge(MetricName("kafka.server", "MetadataLoader", "CurrentControllerId"), "The active controller.", lambda: 3)
    made.gauge(
        MetricName("kafka.server", "MetadataLoader", "FinalizedLevel"),
        "The finalized level of a feature.",
        lambda: {(("featureName", 'a"b\n'),): 1, (("featureName", "metadataVersion"),): 25},
    )
    return made


def test_metrics_are_served_in_prometheus_form_on_loopback() -> None:
    with MetricsServer(registry()) as server:
        assert server.url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(server.url, timeout=120) as answer:
            text = answer.read().decode()
    assert "# HELP kafka_server_metadataloader_currentcontrollerid The active controller." in text
    assert "kafka_server_metadataloader_currentcontrollerid 3.0" in text
    assert 'kafka_server_metadataloader_finalizedlevel{featureName="metadataVersion"} 25.0' in text
    assert 'featureName="a\\"b\\n"' in text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])
def test_an_address_that_is_not_loopback_needs_insecure(host: str) -> None:
    with pytest.raises(UsageError, match="is not a loopback address"):
        MetricsServer(registry(), host=host)


def test_insecure_allows_any_address() -> None:
    with MetricsServer(registry(), host="0.0.0.0", insecure=True) as server:
        assert server.port > 0


def test_the_error_names_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentFaultError, match=f"can't be served at 127.0.0.1:{port}"):
            MetricsServer(registry(), port=port)


def scraped(server: MetricsServer) -> str:
    with urllib.request.urlopen(server.url, timeout=120) as answer:
        text: str = answer.read().decode()
    return text


def threads(server: MetricsServer) -> int:
    """How many threads answer requests to a server."""
    targets = [getattr(thread, "_target", None) for thread in threading.enumerate()]
    return targets.count(server._server.process_request_thread)


@contextmanager
def idle_clients(server: MetricsServer, count: int) -> Iterator[list[socket.socket]]:
    """Clients that have connected and say nothing, or not all."""
    with ExitStack() as stack:
        made = [
            stack.enter_context(socket.create_connection((server.host, server.port), PATIENCE)) for _ in range(count)
        ]
        with suppress(ConnectionError):  # it may be cut off already
            made[0].sendall(b"GET /metrics HTT")
        yield made


def is_cut_off(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_clients_that_say_nothing_are_cut_off_and_hold_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_SECONDS", 0.2)
    with MetricsServer(registry()) as server, idle_clients(server, 3) as clients:
        for client in at_least_one(clients):
            assert is_cut_off(client)
        wait_for(lambda: threads(server) == 0)
        assert "currentcontrollerid 3.0" in scraped(server)


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_SECONDS", 0.5)
    with MetricsServer(registry()) as server, idle_clients(server, 1) as (client,):
        with suppress(ConnectionError):  # may assert nothing: `until` fails where no end comes
            for _ in range(1_000):
                client.sendall(b"x")
                time.sleep(0.05)
                assert threads(server) <= 1
            pytest.fail("it is served for ever")
        wait_for(lambda: threads(server) == 0)


def test_a_client_that_does_not_read_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_SECONDS", 0.5)
    made = MetricsRegistry()
    values = {(("name", f"{number:0100}"),): number for number in range(100_000)}
    made.gauge(MetricName("kafka.server", "MetadataLoader", "Many"), "Too much for the buffers.", lambda: values)
    with MetricsServer(made) as server, idle_clients(server, 1) as (client,):
        with suppress(ConnectionError):  # may assert nothing: it may be cut off already
            client.sendall(b"P/1.0\r\n\r\n")
        wait_for(lambda: threads(server) == 0)


def test_more_clients_than_a_few_are_refused_until_others_have_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_AT_ONCE", 3)
    with MetricsServer(registry()) as server:
        with idle_clients(server, 3):
            wait_for(lambda: threads(server) == 3)
            with socket.create_connection((server.host, server.port), PATIENCE) as refused:
                assert refused.recv(1_000).startswith(b"HTTP/1.0 503 ")
            assert threads(server) == 3
        wait_for(lambda: threads(server) == 0)
        assert "currentcontrollerid 3.0" in scraped(server)


def test_an_address_of_ipv6_is_served() -> None:
    with MetricsServer(registry(), host="::1") as server:
        assert "currentcontrollerid 3.0" in scraped(server)


def asked(server: MetricsServer, path: str) -> tuple[int, str]:
    """The status and the text of an answer."""
    try:
        with urllib.request.urlopen(server.url.replace("/metrics", path), timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def test_health_says_in_one_line_why_not() -> None:
    why: list[str | None] = [None]
    with MetricsServer(registry(), health=Health(unready=lambda: why[0])) as server:
        assert asked(server, "/healthz") == asked(server, "/readyz") == (200, "ok\n")
        why[0] = "the quorum\ncan't be reached"
        assert asked(server, "/readyz") == (503, "the quorum can't be reached\n")
        assert asked(server, "/healthz") == (200, "ok\n")


def test_a_question_on_health_that_fails_is_a_fault_and_no_traceback() -> None:
    def fail() -> str | None:
        raise ValueError("of its own")

    with MetricsServer(registry(), health=Health(dead=fail)) as server:
        assert asked(server, "/healthz") == (503, "the health is not known: ValueError\n")


def test_other_paths_are_not_found() -> None:
    with MetricsServer(registry()) as server:
        assert asked(server, "/admin") == (404, "There are /metrics, /healthz and /readyz.\n")


def test_the_process_exports_its_memory() -> None:
    with MetricsServer(registry()) as server:
        assert "process_resident_memory_bytes" in scraped(server)
