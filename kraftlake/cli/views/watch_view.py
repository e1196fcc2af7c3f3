"""What `kraftlake watch` shows: events as lines, and below them on a terminal where the cluster stands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kraftlake.cli.output.status_line import StatusLine
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, moment
from kraftlake.cli.views.events_view import EventsView, write_json
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.api import WatchState

_BETWEEN = (" · ", Style.QUIET)


class WatchView:
    """Writes events as `kraftlake events` does, above a line with the state after them; as JSON without that line."""

    def __init__(self, terminal: Terminal, cluster_id: str | None, *, as_json: bool) -> None:
        self._terminal = terminal
        self._events = None if as_json else EventsView(terminal)
        self._cluster_id = cluster_id
        self._status = None if as_json else StatusLine(terminal)

    def show(self, events: pa.Table) -> None:
        """Write the lines of rows of `events/`."""
        self.clear()
        if self._events is None:
            write_json(self._terminal, self._cluster_id, events)
        else:
            self._terminal.measure()
            self._events.show(events)

    def state(self, state: WatchState) -> None:
        """Draw the state; all that was written is with the reader then."""
        if self._status is not None:
            self._terminal.measure()
            self._status.show(status_pieces(state))
        sys.stdout.flush()

    def warn(self, text: str) -> None:
        """Tell the user on stderr what to be careful about."""
        self.clear()
        self._terminal.warn(text)

    def clear(self) -> None:
        """Erase the state, so that something else can be written."""
        if self._status is not None:
            self._status.clear()

    close = clear


def status_pieces(state: WatchState) -> list[Piece]:
    """The state in one line, what matters most first, as a narrow terminal cuts its end off."""
    counts, waiting = state.counts, state.seen_to - state.offset - 1
    offline, fenced = counts.offline_partitions_count, counts.fenced_broker_count
    facts: list[list[Piece]] = [
        ["leader ", (NONE if state.leader is None else str(state.leader), Style.NUMBER)],
        ["epoch ", (str(state.epoch), Style.NUMBER)],
        ["offset ", (str(state.offset), Style.NUMBER)],
        [(counted(offline, "offline partition"), Style.BAD if offline else Style.GOOD)],
        [(counted(fenced, "fenced broker"), Style.BAD if fenced else Style.GOOD)],
    ]
    if state.trouble is not None:
        facts.insert(0, [("waiting", Style.WARNING)])
    if waiting > 0:
        facts.append([(f"{counted(waiting, 'record')} not known to be committed", Style.WARNING)])
    facts.append([(moment(state.timestamp), Style.QUIET)])
    pieces: list[Piece] = [("── ", Style.QUIET)]
    for number, fact in enumerate(facts):
        pieces += [_BETWEEN, *fact] if number else fact
    return pieces
