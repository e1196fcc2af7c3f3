"""Tables for notebooks: escaped, with long texts cut."""

from __future__ import annotations

from kraftlake.runtime.html import html_table


def test_every_text_is_escaped_and_long_ones_are_cut() -> None:
    shown = html_table([("<b>", "&" * 1000), ("number", 1234567)], caption="<script>")
    assert "<b>" not in shown
    assert "<script>" not in shown
    assert shown.count("&amp;") == 200
    assert "1,234,567" in shown


def test_without_a_header_the_first_cell_names_its_row() -> None:
    assert ">a</th><td" in html_table([("a", 1)], caption="c")
    assert ">a</td><td" in html_table([("a", 1)], caption="c", header=("x", "y"))
