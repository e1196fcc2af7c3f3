"""The page of the specified properties has the tables that the code makes."""

from __future__ import annotations

from tests.cli.running import ROOT
from tools.spec_page import bugs_table, spec_table


def test_the_page_has_the_properties_of_the_code() -> None:
    assert spec_table() in (ROOT / "docs/dev/specification.md").read_text("utf-8")


def test_the_page_has_the_known_bugs_of_the_code() -> None:
    assert bugs_table() in (ROOT / "docs/dev/specification.md").read_text("utf-8")
