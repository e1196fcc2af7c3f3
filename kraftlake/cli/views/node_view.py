"""The nodes of an image as lines: lists of names, and texts of leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style, styled
from kraftlake.image.nodes.node import Leaf
from kraftlake.image.nodes.paths import FoundNode, part_of

_FIELD = re.compile(r"(?<=[(\[ ])(\w+)=")
_INDENT = "  "
_GAP = 2


def listed(terminal: Terminal, found: Sequence[FoundNode]) -> Iterator[Sequence[Piece]]:
    """The lines of `ls`: leaves by name, then directories with their content."""
    leaves = [one for one in found if not one.node.is_directory]
    directories = [one for one in found if one.node.is_directory]
    yield from _names(terminal, leaves)
    for index, directory in enumerate(directories):
        if len(found) > 1:
            if index or leaves:
                yield ()
            yield (part_of(directory.names[-1]) if directory.names else "/", Style.STRONG), ":"
        yield from _names(terminal, list(directory.children()))


def _names(terminal: Terminal, found: Sequence[FoundNode]) -> Iterator[Sequence[Piece]]:
    pieces: list[Piece] = [
        (part_of(one.names[-1]), Style.NAME if one.node.is_directory else Style.PLAIN) for one in found
    ]
    if terminal.interactive:
        yield from columns(pieces, terminal.width)
    else:
        yield from ([piece] for piece in pieces)


def columns(pieces: Sequence[Piece], width: int) -> Iterator[list[Piece]]:
    """Lines of as many columns as have room in `width` cells, filled column by column."""
    from rich.cells import cell_len

    if not pieces:
        return
    sizes = [cell_len(styled(piece)[0]) for piece in pieces]
    narrowest = min(sizes) + _GAP
    for count in range(max(1, min(len(pieces), (width + _GAP) // narrowest)), 0, -1):
        height = -(-len(pieces) // count)
        widths = [max(sizes[start : start + height]) for start in range(0, len(pieces), height)]
        if sum(widths) + _GAP * (len(widths) - 1) <= width:
            break
    for row in range(height):
        line: list[Piece] = []
        for column, place in enumerate(range(row, len(pieces), height)):
            last = place + height >= len(pieces)
            line += [pieces[place]] if last else [pieces[place], " " * (widths[column] + _GAP - sizes[place])]
        yield line


def leaf_lines(terminal: Terminal, text: str, indent: str = "") -> Iterator[Sequence[Piece]]:
    """The text of a leaf in a line; on a terminal without room for it, its fields have lines of their own."""
    whole = not terminal.interactive or not _FIELD.search(text)
    for line in (indent + text,) if whole else _broken(text, terminal.width, indent):
        yield tuple(_painted(line))


def _broken(text: str, room: int, indent: str) -> Iterator[str]:
    """`Name(a=1, b=[2, 3])` in lines of at most `room` characters: the text before a bracket, in it, and after it."""
    opened = re.search(r"[(\[{]", text)
    parts, end = ([], 0) if opened is None else _parts(text, opened.end())
    if len(indent) + len(text) <= room or opened is None or len("".join(parts)) == 0:
        yield indent + text
        return
    yield indent + text[: opened.end()]
    for part in parts:
        yield from _broken(part, room, indent + _INDENT)
    yield indent + text[end:]


def _parts(text: str, start: int) -> tuple[list[str], int]:
    """The comma-separated parts up to the bracket that encloses `start`, and its index; empty without a bracket."""
    parts, depth = [], 0
    for place in range(start, len(text)):
        character = text[place]
        if depth == 0 and character in ",)]}":
            parts.append(text[start : place + (character == ",")].strip())
            start = place + 1
            if character != ",":
                return parts, place
        depth += (character in "([{") - (character in ")]}")
    return [], 0


def _painted(text: str) -> Iterator[Piece]:
    """The pieces of a text, with the names of fields as pieces of their own."""
    end = 0
    for field in _FIELD.finditer(f" {text}"):
        start, stop = field.start(1) - 1, field.end(1) - 1
        yield text[end:start]
        yield text[start:stop], Style.NAME
        end = stop
    yield text[end:]


def tree_lines(terminal: Terminal, found: FoundNode, *, headed: bool = False) -> Iterator[Sequence[Piece]]:
    """All nodes below a node: a line for each name, and its value below it; under the node's path where `headed`."""
    if headed:
        yield (found.path, Style.STRONG), ":"
    yield from _below(terminal, found, _INDENT if headed else "")


def _below(terminal: Terminal, found: FoundNode, indent: str) -> Iterator[Sequence[Piece]]:
    if isinstance(found.node, Leaf):
        yield from leaf_lines(terminal, found.node.text, indent)
    for child in found.children():
        yield indent, (part_of(child.names[-1]), Style.HEADING if child.node.is_directory else Style.NAME), ":"
        yield from _below(terminal, child, indent + _INDENT)
