"""Names side by side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kraftlake.cli.output.columns import columns
from kraftlake.cli.output.theme import Style, painted

NAMES = st.lists(st.text(st.sampled_from("ab漢\x1b"), min_size=1, max_size=12), min_size=1, max_size=40)


def lines(names: list[str], width: int) -> list[str]:
    return [painted(*pieces, colour=False) for pieces in columns([(name, Style.NAME) for name in names], width)]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (80, ["a  bb  c  dd  eeeee"]),
        (19, ["a  bb  c  dd  eeeee"]),
        (18, ["a   c   eeeee", "bb  dd"]),
        (9, ["a   dd", "bb  eeeee", "c"]),
        (4, ["a", "bb", "c", "dd", "eeeee"]),
    ],
)
def test_as_many_columns_as_have_room(width: int, expected: list[str]) -> None:
    assert lines(["a", "bb", "c", "dd", "eeeee"], width) == expected


def test_of_nothing_there_is_no_line() -> None:
    assert lines([], 80) == []


@given(NAMES, st.integers(1, 100))
def test_each_name_is_there_once_and_no_line_is_too_long(names: list[str], width: int) -> None:
    drawn = lines(names, width)
    assert sorted(" ".join(drawn).split()) == sorted(painted(name, colour=False) for name in names)
    assert all(cell_len(line) <= width for line in drawn) or len(drawn) == len(names)
