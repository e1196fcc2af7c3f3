"""The nodes of an image as lines: lists of names, and texts of leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraftlake.cli.output.columns import columns
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style

if TYPE_CHECKING:
    from kraftlake.image import Found

_FIELD = re.compile(r"(?<=[(\[ ])(\w+)=")
_INDENT = "  "


def listed(terminal: Terminal, found: Sequence[Found]) -> Iterator[Sequence[Piece]]:
    """Lines of what `ls` shows: leaves by name, then directories with what is in them."""
    from kraftlake.image import part_of

    leaves = [one for one in found if not one.node.is_directory]
    directories = [one for one in found if one.node.is_directory]
    yield from _names(terminal, leaves)
    for index, directory in enumerate(directories):
        if len(found) > 1:
            if index or leaves:
                yield ()
            yield (part_of(directory.names[-1]) if directory.names else "/", Style.STRONG), ":"
        yield from _names(terminal, list(directory.children()))


def _names(terminal: Terminal, found: Sequence[Found]) -> Iterator[Sequence[Piece]]:
    from kraftlake.image import part_of

    pieces: list[Piece] = [
        (part_of(one.names[-1]), Style.NAME if one.node.is_directory else Style.PLAIN) for one in found
    ]
    if terminal.interactive:
        yield from columns(pieces, terminal.width)
    else:
        yield from ([piece] for piece in pieces)


def leaf_lines(terminal: Terminal, text: str, indent: str = "") -> Iterator[Sequence[Piece]]:
    """The text of a leaf in a line, or on a terminal that has no room for it in a line for each of its fields."""
    fits = len(text) + len(indent) <= terminal.width
    if fits or not terminal.interactive or not _FIELD.search(text):
        yield indent, *_painted(text)
        return
    for line in _broken(text):
        yield indent, *_painted(line)


def _broken(text: str) -> Iterator[str]:
    """`Name(a=1, b=[2, 3])` in lines: the name, its fields, the bracket at its end."""
    depth, start = 0, 0
    for place, character in enumerate(text):
        if character in "([{":
            depth += 1
            if depth == 1:
                yield text[: place + 1]
                start = place + 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                yield _INDENT + text[start:place].strip()
                start = place
        elif character == "," and depth == 1:
            yield _INDENT + text[start : place + 1].strip()
            start = place + 1
    yield text[start:]


def _painted(text: str) -> Iterator[Piece]:
    """The pieces of a text, with the names of fields apart."""
    end = 0
    for field in _FIELD.finditer(f" {text}"):
        start, stop = field.start(1) - 1, field.end(1) - 1
        yield text[end:start]
        yield text[start:stop], Style.NAME
        end = stop
    yield text[end:]


def tree_lines(terminal: Terminal, found: Found, indent: str = "") -> Iterator[Sequence[Piece]]:
    """All that is below a node: a line for each name, and its value below it."""
    from kraftlake.image import Leaf, part_of

    if isinstance(found.node, Leaf):
        yield from leaf_lines(terminal, found.node.text, indent)
        return
    for child in found.children():
        yield indent, (part_of(child.names[-1]), Style.HEADING if child.node.is_directory else Style.NAME), ":"
        yield from tree_lines(terminal, child, indent + _INDENT)
