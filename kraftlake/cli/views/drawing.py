"""What the views draw with rich: texts, light tables, branches of a tree."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kraftlake.cli.theme import Style
from kraftlake.cli.views.words import Piece
from kraftlake.cli.visible import visible

_BETWEEN_COLUMNS = 2


def text(*pieces: Piece) -> Text:
    """One rich Text out of plain and styled pieces, each made visible."""
    made = Text(overflow="fold")
    for piece in pieces:
        content, style = (piece, Style.PLAIN) if isinstance(piece, str) else piece
        made.append(visible(content), style.rich)
    return made


class LightTable(Table):
    """A table that breaks the names in its column `whole` over lines only where all else is as narrow as it can be."""

    whole: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Decide it by the room there is, then draw."""
        needed = _BETWEEN_COLUMNS * (len(self.columns) - 1)
        for column in self.columns:
            texts = [str(column.header), *map(str, column.cells)]
            words = texts if column.header == self.whole else [word for one in texts for word in one.split()]
            needed += max(map(cell_len, words), default=0)
        for column in self.columns:
            column.no_wrap = column.header == self.whole and needed <= options.max_width
        return super().__rich_console__(console, options)


def table(*headings: str, right: Iterable[str] = (), whole: str | None = None) -> Table:
    """A light table without vertical lines; the columns named in `right` are flushed right.

    The names in the column `whole` stay on one line, so that they can be copied, wherever there is room for that.
    """
    made = LightTable(
        box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False, header_style=Style.QUIET.rich
    )
    made.whole = whole
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
