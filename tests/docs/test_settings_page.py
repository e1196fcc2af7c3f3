"""The page of clusters says what the table of settings says."""

from __future__ import annotations

from pathlib import Path

from tools.settings_page import settings_section

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


def test_the_settings_without_effect_are_those_of_the_table() -> None:
    assert settings_section() in PAGE.read_text(), "run python -m tools.settings_page, and put what it prints there"
