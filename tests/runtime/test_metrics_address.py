from __future__ import annotations

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.runtime.metrics_address import MetricsAddress


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9400", "127.0.0.1", 9400),
        ("0", "127.0.0.1", 0),
        ("0.0.0.0:9400", "0.0.0.0", 9400),
        ("metrics.example.org:65535", "metrics.example.org", 65535),
        ("[::1]:9400", "::1", 9400),
    ],
)
def test_an_address_is_a_port_with_or_without_a_host(text: str, host: str, port: int) -> None:
    assert MetricsAddress.parse(text) == MetricsAddress(host=host, port=port)


@pytest.mark.parametrize("text", ["", "port", "65536", "-1", ":9400", "::1:9400", "host:", "host:x", "٣", "123456"])
def test_the_error_of_another_text_says_what_an_address_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no address for metrics: give a port from 0"):
        MetricsAddress.parse(text)


@pytest.mark.parametrize(("host", "is_exposed"), [("localhost", False), ("127.0.0.2", False), ("0.0.0.0", True)])
def test_an_address_is_exposed_unless_it_is_loopback_or_meant(host: str, is_exposed: bool) -> None:
    assert MetricsAddress(host=host, port=1).is_exposed is is_exposed
    assert not MetricsAddress(host=host, port=1, insecure=True).is_exposed
