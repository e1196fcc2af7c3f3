"""The tests that an earlier part of a run has passed, which `tools/test_long.py` does not run again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

PASSED_EARLIER = "KRAFTLAKE_PASSED_EARLIER"
"""The variable with the path of their names, a JSON list."""


def deselect_passed(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that have passed, where the variable names a file."""
    if not (path := os.environ.get(PASSED_EARLIER)):
        return
    passed = set(json.loads(Path(path).read_text("utf-8")))
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
    items[:] = [item for item in items if item.nodeid not in passed]
