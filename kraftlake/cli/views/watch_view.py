"""The output of `kraftlake watch`: events as lines, and on a terminal the state of the cluster below them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style, painted, styled
from kraftlake.cli.output.words import NONE, moment
from kraftlake.cli.views.events_view import EventsView
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.api import WatchState

_BEGIN: Piece = ("── ", Style.QUIET)
_BETWEEN: Piece = (" · ", Style.QUIET)


_ERASE = "\r\x1b[J"
"""Erases from the beginning of the line to the end of the screen, with the parts that a narrower terminal wrapped."""


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


class WatchView:
    """Writes events as `kraftlake events` does, above a line with the state after them, which may be `hidden`."""

    def __init__(self, terminal: Terminal, *, hidden: bool) -> None:
        self._terminal = terminal
        self._events = EventsView(terminal)
        self._status = StatusLine(terminal, hidden=hidden)

    def show(self, events: pa.Table) -> None:
        """Write the lines of rows of `events/`."""
        self._terminal.measure()
        self._status.clear()
        self._events.show(events)

    def state(self, state: WatchState) -> None:
        """Draw the state, after flushing all earlier output to the reader."""
        self._terminal.measure()
        self._status.show(status_pieces(state, self._terminal.width - 1))
        sys.stdout.flush()

    def warn(self, text: str) -> None:
        """Write a warning on stderr."""
        self.clear()
        self._terminal.warn(text)

    def clear(self) -> None:
        """Erase the state, so that other output can follow."""
        self._status.clear()
        sys.stdout.flush()

    close = clear


def status_pieces(state: WatchState, room: int) -> list[Piece]:
    """The state in one line of at most `room` cells: as many facts as fit, the most important first."""
    counts, waiting = state.counts, state.seen_to - state.offset - 1
    offline, fenced = counts.offline_partitions_count, counts.fenced_broker_count
    facts: list[list[Piece]] = [
        [(counted(offline, "offline partition"), Style.BAD if offline else Style.GOOD)],
        [(counted(fenced, "fenced broker"), Style.BAD if fenced else Style.GOOD)],
        ["offset ", (_number(state.offset), Style.NUMBER)],
        ["leader ", (_number(state.leader), Style.NUMBER)],
        ["epoch ", (_number(state.epoch), Style.NUMBER)],
        [(moment(state.timestamp), Style.QUIET)],
    ]
    if waiting > 0:
        facts.insert(3, [(f"{counted(waiting, 'record')} not known to be committed", Style.WARNING)])
    if state.trouble is not None:
        facts.insert(0, [("waiting", Style.WARNING)])
    pieces: list[Piece] = []
    for fact in facts:
        more = [_BETWEEN if pieces else _BEGIN, *fact]
        room -= sum(len(styled(piece)[0]) for piece in more)
        if room < 0:
            break
        pieces += more
    return pieces


def _number(value: int | None) -> str:
    return NONE if value is None or value < 0 else str(value)
