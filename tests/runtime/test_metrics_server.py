from __future__ import annotations

import socket
import urllib.request

import pytest

from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from kraftlake.runtime.metrics import MetricName, MetricsRegistry
from kraftlake.runtime.metrics_server import MetricsServer


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
        with urllib.request.urlopen(server.url, timeout=30) as answer:
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
