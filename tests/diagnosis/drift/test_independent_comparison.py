"""Pairs of logs of real clusters: what `drift` says is what a comparison of images in JSON finds."""

from __future__ import annotations

import os

from tests.cli.running import DIRECTORY, TORN
from tests.diagnosis.drift.independent_comparison import check

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
STATES = [(DIRECTORY, 2000), (DIRECTORY, 5736), (TORN, None)]
MORE = [(DIRECTORY, 3000), (DIRECTORY, 458), (TORN, 1723), (DIRECTORY, 4000)]
"""Logs with offsets; the others are compared at their ends."""


def test_drift_finds_what_an_independent_comparison_finds() -> None:
    logs = [(str(path), at) for path, at in (STATES + MORE if LONG else STATES)]
    found = check(logs)
    assert len(found) == len(logs) * (len(logs) - 1) // 2
    assert min(found.values()) > 0
    assert check([logs[0], logs[0]]) == {(0, 1): 0}
