"""The lines of a tree of texts and light tables, as rich draws them.

rich measures, wraps and crops each cell anew on every level of a tree. Lines that fit need none of that; rich draws the
rest, label by label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.text import Text
from rich.tree import Tree

from kraftlake.cli.output.drawing import Fitting, PlainTable
from kraftlake.cli.output.theme import Style, paint

_GUIDE = 4
"""The width of a level, in cells."""
_RIGHT = "right"
_BY_NAME = {style.rich: style for style in Style}


def tree_lines(tree: Tree, console: Console) -> Iterator[str]:
    """The lines of a tree, with ANSI codes where the console has colours; blanks at their ends may differ."""
    colour = console.color_system is not None
    yield from _node(tree, console, first="", others="", colour=colour)


def _node(tree: Tree, console: Console, *, first: str, others: str, colour: bool) -> Iterator[str]:
    guide = first
    for line in _label(tree.label, console, console.width - len(first), colour=colour):
        yield paint(guide, Style.QUIET, colour=colour) + line
        guide = others
    for child in tree.children:
        is_last = child is tree.children[-1]
        yield from _node(
            child,
            console,
            first=others + ("└── " if is_last else "├── "),
            others=others + (" " * _GUIDE if is_last else "│   "),
            colour=colour,
        )


def _label(label: RenderableType, console: Console, width: int, *, colour: bool) -> Iterator[str]:
    if isinstance(label, Fitting):
        label = label.within(width)
    if isinstance(label, Text) and cell_len(label.plain) <= width and "\n" not in label.plain:
        yield _painted(label, colour=colour)
    elif isinstance(label, PlainTable) and (widths := label.widths_within(width)) is not None:
        yield from _rows(label, widths, colour=colour)
    else:
        for segments in console.render_lines(label, console.options.update(width=width), pad=False):
            yield "".join(_segment(*segment[:2], colour=colour) for segment in segments)


def _segment(text: str, style: Any, *, colour: bool) -> str:
    return style.render(text, color_system=ColorSystem.STANDARD) if colour and style else text


def _rows(table: PlainTable, widths: list[int], *, colour: bool) -> Iterator[str]:
    heads = [paint(str(column.header), Style.QUIET, colour=colour) for column in table.columns]
    lengths = [cell_len(str(column.header)) for column in table.columns]
    rights = [column.justify == _RIGHT for column in table.columns]

    def row(cells: Iterable[str], lengths: Iterable[int]) -> str:
        padded = [
            " " * (width - length) + cell if right else cell + " " * (width - length)
            for cell, length, width, right in zip(cells, lengths, widths, rights, strict=True)
        ]
        return "  ".join(padded)

    yield row(heads, lengths)
    yield paint("─" * (sum(widths) + 2 * (len(widths) - 1)), Style.QUIET, colour=colour)
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        painted = [_painted(cell, colour=colour).split("\n") for cell in cells]
        sizes = [[*map(cell_len, str(cell).split("\n"))] for cell in cells]
        yield from map(row, zip_longest(*painted, fillvalue=""), zip_longest(*sizes, fillvalue=0))


def _painted(text: RenderableType, *, colour: bool) -> str:
    """A text with the ANSI codes of its spans, which follow each other and never cross a line end."""
    plain = str(text)
    if not colour or not isinstance(text, Text):
        return plain
    pieces, at = [], 0
    for start, end, style in text.spans:
        lines = [paint(line, _BY_NAME[str(style)], colour=True) for line in plain[start:end].split("\n")]
        pieces += [plain[at:start], "\n".join(lines)]
        at = end
    return "".join([*pieces, plain[at:]])
