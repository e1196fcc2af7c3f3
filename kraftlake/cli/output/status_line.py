"""A line below all that a command has written on a terminal so far, drawn anew as its content changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, painted

_ERASE = "\r\x1b[J"
"""From the beginning of the line to the end of the screen: also what a narrower terminal has wrapped."""


class StatusLine:
    """The last line of a terminal; nothing where stdout is none, or one that can't erase.

    The cursor rests at its beginning. A terminal that wraps its lines anew when it is resized takes the cursor along,
    so that erasing from there on erases all of the line. Clear it before anything else is
    written; whoever writes flushes stdout.
    """

    def __init__(self, terminal: Terminal, *, hidden: bool = False) -> None:
        self._terminal = terminal
        self._drawn = ""
        self._is_shown = terminal.interactive and not hidden and os.environ.get("TERM", "dumb") != "dumb"

    def show(self, pieces: Sequence[Piece]) -> None:
        """Draw the line, which is shorter than the terminal is wide, unless it is there already."""
        if self._is_shown:
            line = painted(*pieces, colour=self._terminal.colour)
            if line != self._drawn:
                sys.stdout.write(f"{_ERASE}{line}\r")
                self._drawn = line

    def clear(self) -> None:
        """Erase the line."""
        if self._drawn:
            sys.stdout.write(_ERASE)
        self._drawn = ""
