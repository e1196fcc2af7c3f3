"""Elements that the views draw with rich: texts, light tables, branches of a tree."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kraftlake.cli.output.theme import Piece, Style, styled

_BETWEEN_COLUMNS = 2


def text(*pieces: Piece) -> Text:
    """A rich Text of plain and styled pieces."""
    made = Text(overflow="fold")
    for piece in pieces:
        content, style = styled(piece)
        made.append(content, style.rich)
    return made


class PlainTable(Table):
    """A table that breaks lines between words only, and the names in its column `whole` never, if there is room."""

    whole: str | None = None

    def widths_within(self, room: int) -> list[int] | None:
        """The column widths at which all lines of texts fit unbroken, None where they do not fit."""
        lines = [
            [line for one in (column.header, *column.cells) for line in str(one).split("\n")] for column in self.columns
        ]
        if any(
            text.endswith(" ")
            for column, texts in zip(self.columns, lines, strict=True)
            if column.justify == "right"
            for text in texts
        ):  # rich strips it
            return None
        widths = [max(map(cell_len, texts)) for texts in lines]
        widths[-1] = max(widths[-1], 1)
        return widths if sum(widths) + _BETWEEN_COLUMNS * (len(widths) - 1) <= room else None

    def natural_widths(self) -> list[int]:
        """The column widths at which no line of a cell is broken."""
        texts = ["\n".join([str(column.header), *map(str, column.cells)]) for column in self.columns]
        return [max(map(cell_len, lines.splitlines()), default=0) for lines in texts]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Distribute the available width, then draw."""
        texts = ["\n".join([str(column.header), *map(str, column.cells)]) for column in self.columns]
        natural = self.natural_widths()
        longest_words = [max(map(cell_len, lines.split()), default=0) for lines in texts]
        whole = [column.header == self.whole for column in self.columns]
        widths = zip(whole, natural, longest_words, strict=True)
        narrowest = [full if is_whole else word for is_whole, full, word in widths]
        room = options.max_width - _BETWEEN_COLUMNS * (len(self.columns) - 1)
        if sum(narrowest) > room:
            whole, narrowest = [False] * len(whole), longest_words
        left = room - sum(narrowest)
        for index, (width, full) in enumerate(zip(_shared_out(narrowest, natural, left), natural, strict=True)):
            column = self.columns[index]
            column.no_wrap = whole[index]
            column.width = width if left >= 0 and sum(natural) - sum(narrowest) > left and full else None
        return super().__rich_console__(console, options)


class Fitting:
    """A text or a table where its lines fit unbroken, and `narrow` in its place where they do not."""

    def __init__(self, wide: Text | PlainTable, narrow: RenderableType) -> None:
        self._wide = wide
        self._narrow = narrow

    def within(self, room: int) -> RenderableType:
        """The renderable for lines of `room` cells."""
        if isinstance(self._wide, Text):
            return self._wide if cell_len(self._wide.plain) <= room else self._narrow
        widths = self._wide.natural_widths()
        return self._wide if sum(widths) + _BETWEEN_COLUMNS * (len(widths) - 1) <= room else self._narrow

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the renderable that fits."""
        yield self.within(options.max_width)


def _shared_out(narrowest: list[int], natural: list[int], left: int) -> list[int]:
    """The column widths after distributing the `left` cells by need, the smallest need first."""
    widths = list(narrowest)
    for index in sorted(range(len(widths)), key=lambda index: natural[index] - narrowest[index]):
        more = max(0, min(natural[index] - narrowest[index], left))
        widths[index] += more
        left -= more
    return widths


def table(*headings: str, right: Iterable[str] = (), whole: str | None = None) -> PlainTable:
    """A light table without vertical lines; the columns named in `right` are flushed right.

    The names in the column `whole` stay on one line, so that they can be copied, wherever there is room for that.
    """
    made = PlainTable(
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
    """A branch with a heading followed by its summary."""
    return parent.add(text((name, Style.HEADING), "  ", *pieces) if pieces else text((name, Style.HEADING)))
