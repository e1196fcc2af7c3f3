"""docs/kafka-map.md names files and tests; both must be there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|\n ").split(" | "))
    for line in (ROOT / "docs" / "kafka-map.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "---" not in line
][1:]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_file_and_the_test_of_each_mechanism_exist(row: tuple[str, ...]) -> None:
    _, ours, shown_by = row
    assert (ROOT / "kraftlake" / ours.strip("`")).is_file()
    test = ROOT / shown_by.strip("`")
    assert re.search(r"^\s*def test_", test.read_text("utf-8"), re.MULTILINE)
