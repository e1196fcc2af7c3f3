"""Tables on narrow terminals."""

from __future__ import annotations

import io
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from kraftlake.cli.output.drawing import table, text
from tests.histories import Draw

WORDS = st.text("abxyz-日", min_size=1, max_size=9)
CELLS = st.lists(WORDS, max_size=5).map(" ".join)


@st.composite
def tables(draw: Draw) -> tuple[list[str], list[list[str]]]:
    headings = draw(st.lists(WORDS, min_size=1, max_size=5, unique=True))
    return headings, draw(st.lists(st.lists(CELLS, min_size=len(headings), max_size=len(headings)), max_size=4))


def drawn(headings: list[str], rows: list[list[str]], width: int, whole: str | None = None) -> list[str]:
    made = table(*headings, whole=whole)
    for row in rows:
        made.add_row(*map(text, row))
    stream = io.StringIO()
    Console(file=stream, width=width).print(made)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def words_of(*cells: str) -> list[str]:
    return [word for cell in cells for word in cell.split()]


@given(tables(), st.integers(0, 60))
def test_no_word_is_broken_where_all_words_have_room(
    given_table: tuple[list[str], list[list[str]]], spare: int
) -> None:
    headings, rows = given_table
    columns = [[heading, *cells] for heading, *cells in zip(headings, *rows, strict=True)]
    room = sum(max(map(cell_len, words_of(*column))) for column in columns) + 2 * (len(columns) - 1)
    width = max(10, room) + spare
    lines = drawn(headings, rows, width)
    assert max(map(cell_len, lines)) <= width
    printed = Counter(word for line in lines for word in line.replace("─", " ").split())
    assert printed == Counter(words_of(*headings, *(cell for row in rows for cell in row)))


def test_what_wants_little_room_gets_it_before_what_wants_much() -> None:
    lines = drawn(["name", "few words", "many"], [["a", "b c", "one two three four five six"]], 30)
    assert lines[0] == "name  few words  many"
    assert lines[2:] == ["a     b c        one two three", "                 four five six"]


def test_a_whole_name_stays_on_its_line_and_others_break_between_words() -> None:
    lines = drawn(["name", "said"], [["a name of words", "and more words"]], 22, whole="name")
    assert lines[2:] == ["a name of words  and", "                 more", "                 words"]
