"""Names side by side, as `ls` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraftlake.cli.output.theme import Piece, styled

_BETWEEN = 2


def columns(pieces: Sequence[Piece], width: int) -> Iterator[list[Piece]]:
    """Lines of as many columns as have room in `width` cells, filled column by column."""
    from rich.cells import cell_len

    if not pieces:
        return
    sizes = [cell_len(styled(piece)[0]) for piece in pieces]
    narrowest = min(sizes) + _BETWEEN
    for count in range(max(1, min(len(pieces), (width + _BETWEEN) // narrowest)), 0, -1):
        height = -(-len(pieces) // count)
        widths = [max(sizes[start : start + height]) for start in range(0, len(pieces), height)]
        if sum(widths) + _BETWEEN * (len(widths) - 1) <= width:
            break
    for row in range(height):
        line: list[Piece] = []
        for column, place in enumerate(range(row, len(pieces), height)):
            last = place + height >= len(pieces)
            line += [pieces[place]] if last else [pieces[place], " " * (widths[column] + _BETWEEN - sizes[place])]
        yield line
