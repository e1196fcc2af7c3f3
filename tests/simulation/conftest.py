"""The virtual time of a test that simulates no cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator import scheduler as scheduling
from simulator.scheduler import Scheduler


@pytest.fixture
def time() -> Iterator[Scheduler]:
    made = Scheduler(1)
    scheduling.activate(made)
    yield made
    scheduling.activate(None)
