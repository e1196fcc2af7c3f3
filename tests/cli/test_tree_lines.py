"""Trees are drawn as rich draws them, whatever fits on a line and whatever does not."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, Group
from rich.text import Text
from rich.tree import Tree

from kraftlake.cli.output.drawing import Fitting, branch, table, text, tree
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.tree_lines import tree_lines

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
WORDS = st.text(st.sampled_from("ab-é漢 \x1b\n,"), max_size=14)
PIECES = st.lists(st.one_of(WORDS, st.tuples(WORDS, st.sampled_from(Style))), max_size=3)


def console(width: int, *, colour: bool = False) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=colour, color_system="standard" if colour else None, width=width,
        highlight=False, markup=False, emoji=False, _environ={},
    )  # fmt: skip


@st.composite
def cells(draw: st.DrawFn) -> Text:
    """A text of one line, or of several."""
    first, *others = draw(st.lists(PIECES, min_size=1, max_size=3))
    made = text(*first)
    for line in others:
        made.append("\n")
        made.append_text(text(*line))
    return made


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    root = tree(*draw(PIECES))
    places = [root]
    for _ in range(draw(st.integers(0, 6))):
        parent = draw(st.sampled_from(places))
        if draw(st.booleans()):
            places.append(branch(parent, draw(WORDS), *draw(PIECES)))
            continue
        columns = draw(st.integers(1, 4))
        headings = [f"{number}{draw(st.sampled_from(['', 'x', 'long heading']))}" for number in range(columns - 1)] + [
            draw(st.sampled_from(["", "last"]))
        ]
        made = table(*headings, right=headings[:2], whole=draw(st.sampled_from([None, *headings])))
        for _ in range(draw(st.integers(0, 3))):
            made.add_row(*(draw(cells()) for _ in headings))
        parent.add(Fitting(made, Group(text("narrow"), text(*draw(PIECES)))) if draw(st.booleans()) else made)
    return root


def by_rich(drawn: Tree, width: int, *, colour: bool = False) -> list[str]:
    out = console(width, colour=colour)
    with out.capture() as captured:
        out.print(drawn)
    return [_ANSI.sub("", line).rstrip() for line in captured.get().splitlines()]


@settings(max_examples=40)
@given(trees(), st.sampled_from([20, 60, 160]))
def test_a_tree_is_what_rich_draws(drawn: Tree, width: int) -> None:
    assert [line.rstrip() for line in tree_lines(drawn, console(width))] == by_rich(drawn, width)


@settings(max_examples=10)
@given(trees(), st.sampled_from([40, 100]))
def test_colours_change_nothing_else(drawn: Tree, width: int) -> None:
    lines = [_ANSI.sub("", line).rstrip() for line in tree_lines(drawn, console(width, colour=True))]
    assert lines == by_rich(drawn, width, colour=True)


@pytest.mark.parametrize("style", [style for style in Style if style.ansi])
def test_pieces_have_the_codes_of_their_style(style: Style) -> None:
    pieces: list[Piece] = ["a ", ("b", style), " c"]
    assert list(tree_lines(tree(*pieces), console(40, colour=True))) == [f"a \x1b[{style.ansi}mb\x1b[0m c"]
