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
    so that erasing from there on erases all of the line. Clear it before anything else is written.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._drawn = ""
        self._can_erase = terminal.interactive and os.environ.get("TERM", "dumb") != "dumb"

    def show(self, pieces: Sequence[Piece]) -> None:
        """Draw the line, which is shorter than the terminal is wide, unless it is there already."""
        if self._can_erase:
            line = painted(*pieces, colour=self._terminal.colour)
            if line != self._drawn:
                sys.stdout.write(f"{_ERASE}{line}\r")
                sys.stdout.flush()
                self._drawn = line

    def clear(self) -> None:
        """Erase the line."""
        if self._drawn:
            sys.stdout.write(_ERASE)
        self._drawn = ""
