"""docs/kafka-map.md: its rows stand in tables, and the files and tests that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.at_least_one import at_least_one

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "kafka-map.md").read_text("utf-8")
HEAD = "| Kafka | here | shown by |\n| --- | --- | --- |\n"
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in PAGE.replace(HEAD, "").splitlines()
    if line.startswith("|")
]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_file_and_the_test_of_each_mechanism_exist(row: tuple[str, ...]) -> None:
    _, ours, shown_by = row
    assert (ROOT / "kraftlake" / ours.strip("`")).is_file()
    test = ROOT / shown_by.strip("`")
    assert re.search(r"^\s*def test_", test.read_text("utf-8"), re.MULTILINE)


def test_every_row_stands_in_a_table() -> None:
    tables = [one for one in PAGE.split("\n\n") if one.startswith("|") or "\n|" in one]
    assert all(one.startswith(HEAD) for one in at_least_one(tables))
