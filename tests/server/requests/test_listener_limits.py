"""Connections a second: those of ten seconds at once, and then as many as the rate allows."""

from __future__ import annotations

import pytest

from kraftlake.server.requests.listener_limits import ConnectionPace


def test_ten_seconds_of_connections_come_at_once_and_more_by_the_rate() -> None:
    pace = ConnectionPace(4)
    for _ in range(40):
        assert pace.wait_seconds(100.0) == 0
        pace.count()
    assert pace.wait_seconds(100.0) == pytest.approx(0.25)
    assert pace.wait_seconds(100.1) == pytest.approx(0.15)
    assert pace.wait_seconds(100.25) == pytest.approx(0)


def test_a_pause_admits_no_more_than_ten_seconds_of_connections() -> None:
    pace = ConnectionPace(1)
    assert pace.wait_seconds(0) == 0
    admitted = 0
    while not pace.wait_seconds(1e6):
        pace.count()
        admitted += 1
    assert admitted == 10


def test_a_rate_of_none_admits_none() -> None:
    assert ConnectionPace(0).wait_seconds(5.0) > 0
