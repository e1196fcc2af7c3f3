from __future__ import annotations

from kraftlake.runtime import shown


def test_strings_from_outside_are_escaped_and_cut() -> None:
    assert shown("a\n\x1b\u202eb") == "a\\n\\x1b\\u202eb"
    assert shown("x" * 500, 10) == "x" * 10 + "…"
