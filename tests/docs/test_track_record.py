"""docs/track-record.md: the tests that it names exist, and its rows stand in tables."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "track-record.md").read_text("utf-8")
TESTS = re.findall(r"\| `(test_\w+)` \|$", PAGE, re.MULTILINE)


def test_the_test_of_each_fault_exists_once() -> None:
    files = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    there = [name for text in files for name in re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)]
    assert TESTS
    assert {name: there.count(name) for name in TESTS} == dict.fromkeys(TESTS, 1)


def test_each_row_is_one_line_with_a_fault_and_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith(("| what", "| ---"))]
    assert len(rows) == len(TESTS) == len({*TESTS})
    assert all(row.count(" | ") == 1 for row in rows)
