"""What the views draw with rich: texts, light tables, branches of a tree."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kraftlake.cli.theme import Style
from kraftlake.cli.views.words import Piece
from kraftlake.cli.visible import visible


def text(*pieces: Piece) -> Text:
    """One rich Text out of plain and styled pieces, each made visible."""
    made = Text(overflow="fold")
    for piece in pieces:
        content, style = (piece, Style.PLAIN) if isinstance(piece, str) else piece
        made.append(visible(content), style.rich)
    return made


def table(*headings: str, right: Iterable[str] = ()) -> Table:
    """A light table without vertical lines; the columns named in `right` are flushed right."""
    made = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False, header_style=Style.QUIET.rich
    )
    made.border_style = Style.QUIET.rich
    flushed = set(right)
    for heading in headings:
        made.add_column(heading, justify="right" if heading in flushed else "left", overflow="fold")
    return made


def tree(*pieces: Piece) -> Tree:
    """The root of a tree."""
    return Tree(text(*pieces), guide_style=Style.QUIET.rich)


def branch(parent: Tree, name: str, *pieces: Piece) -> Tree:
    """A branch with a heading and, after it, what it comes to."""
    return parent.add(text((name, Style.HEADING), "  ", *pieces) if pieces else text((name, Style.HEADING)))
