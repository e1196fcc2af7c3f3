"""CONTRIBUTING.md: the files in its table exist, and it shows every room."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("|")][2:]
PATH = re.compile(r"`([\w/]+\.py)`")


@pytest.mark.parametrize(("change", "places"), ROWS, ids=[change for change, _ in ROWS])
def test_the_files_to_open_exist(change: str, places: str) -> None:
    paths = PATH.findall(places)
    assert paths, f"no file to open for {change}"
    for path in paths:
        assert (ROOT / path).is_file() or (ROOT / "kraftlake" / path).is_file(), path


def test_a_name_beside_a_file_is_defined_there() -> None:
    named = re.findall(r"`([\w/]+\.py)`: `(\w+)`", PAGE)
    assert named
    for path, name in named:
        assert f"def {name}(" in (ROOT / "kraftlake" / path).read_text("utf-8")


def test_there_are_twenty_changes_and_each_stands_once() -> None:
    changes = [change for change, _ in ROWS]
    assert len(changes) == len({*changes}) >= 20


def test_the_layers_name_every_room() -> None:
    rooms = {path.parent.name for path in (ROOT / "kraftlake").glob("*/__init__.py")}
    (layers,) = re.findall(r"^    runtime ←(?:.|\n)*?\n\n", PAGE, re.MULTILINE)
    assert rooms <= {*re.findall(r"\w+", layers)}
