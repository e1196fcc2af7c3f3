"""Tests of one group run in one worker."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("alone")
def test_groups_count(request: pytest.FixtureRequest) -> None:
    """Else each worker would start a JVM, a session and a cluster of its own, unnoticed."""
    if request.config.getoption("loadgroup", False):  # may assert nothing: without workers there is no group
        assert request.node.nodeid.endswith("@alone"), f"pytest-xdist heeds no groups with pytest {pytest.__version__}"
