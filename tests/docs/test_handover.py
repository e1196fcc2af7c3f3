"""docs/handover.md shows what its commands print."""

from __future__ import annotations

from tests.cli.running import ROOT
from tests.docs.shown import anew

PAGE = ROOT / "docs" / "handover.md"


def test_the_page_shows_what_its_commands_print() -> None:
    text = PAGE.read_text("utf-8")
    assert text.count("$ kraftlake") == 2
    assert anew(text) == text, "python -m tests.docs.shown docs/handover.md writes it anew"
