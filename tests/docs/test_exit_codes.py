"""docs/reference/exit-codes.md has the codes of the code, and names each command that says that a cluster is unwell."""

from __future__ import annotations

import re

from kraftlake.cli.faults import INTERRUPTED, READER_LEFT, UNHEALTHY
from tests.at_least_one import at_least_one
from tests.cli.running import ROOT

PAGE = (ROOT / "docs" / "reference" / "exit-codes.md").read_text("utf-8")
CODES = re.findall(r"^\| (\d[\d, ]*) \| (.*) \|$", PAGE, re.MULTILINE)
ROWS = {code: meaning for codes, meaning in CODES for code in codes.split(", ")}


def test_each_code_has_its_meaning() -> None:
    assert {*ROWS} == {"0", "1", "2", "129", "143", *map(str, (UNHEALTHY, INTERRUPTED, READER_LEFT))}


def test_every_command_that_says_that_something_is_wrong_is_named() -> None:
    files = sorted((ROOT / "kraftlake" / "cli" / "commands").rglob("*.py"))
    saying = [path.stem.replace("_", "-") for path in files if "Exit(UNHEALTHY)" in path.read_text("utf-8")]
    for name in at_least_one(saying):
        assert f"`{name.replace('undo-apply', 'undo --apply')}`" in ROWS[str(UNHEALTHY)], name
