"""docs/track-record.md: the tests that it names exist, and its rows stand in tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "track-record.md").read_text("utf-8")
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


@pytest.mark.parametrize(("file", "name"), TESTS, ids=[name for _, name in TESTS])
def test_the_test_of_a_bug_exists(file: str, name: str) -> None:
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)


def test_each_row_has_three_cells_and_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith(("| what", "| ---"))]
    assert len(rows) == len(TESTS) == len({*TESTS})
    assert all(row.count(" | ") == 2 for row in rows)
