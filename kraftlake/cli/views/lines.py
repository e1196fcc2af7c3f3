"""Records and events as lines of a terminal, as fast as they come."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style, paint, styled
from kraftlake.cli.output.visible import visible
from kraftlake.cli.output.words import moment
from kraftlake.cli.selection.log_names import Names
from kraftlake.cli.views.record_summary import summary

_NARROW = 110
_TYPE_WIDTH = 19
_ENDINGS = {"REMOVE": Style.BAD, "UNREGISTER": Style.BAD, "ABORT": Style.BAD}
_LEAST_ROOM = 20
_STYLES = {
    "leader_lost": Style.BAD,
    "broker_fenced": Style.BAD,
    "broker_unregistered": Style.BAD,
    "topic_deleted": Style.BAD,
    "recovery_state_changed": Style.WARNING,
    "isr_shrank": Style.WARNING,
    "broker_in_controlled_shutdown": Style.WARNING,
    "leader_elected": Style.GOOD,
    "broker_unfenced": Style.GOOD,
    "broker_registered": Style.GOOD,
    "topic_created": Style.GOOD,
    "isr_expanded": Style.GOOD,
    "controller_elected": Style.EVENT,
    "reassignment_started": Style.NAME,
    "reassignment_finished": Style.NAME,
}


class LineTimes:
    """Times in full, or on a narrow terminal times of day, with a line of its own where the date changes."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._by_day = terminal.interactive and terminal.width < _NARROW
        self._day = ""

    def of(self, milliseconds: int) -> str:
        """The time of the next line, padded to the width of all; writes the line of a new date."""
        time = moment(milliseconds)
        if not self._by_day:
            return f"{time:24}"
        day, _, time = time.rpartition(" ")
        if day != self._day:
            self._day = day
            self._terminal.line((f"── {day} UTC", Style.QUIET))
        return f"{time:13}"


class LogView:
    """Writes records as lines: offset, epoch, time, type, summary; `names` are those known before the first of them.

    Lines are cut to a terminal's width, never when stdout is piped.
    """

    def __init__(self, terminal: Terminal, names: Names) -> None:
        self._terminal = terminal
        self._names = names
        self._times = LineTimes(terminal)

    def show(self, form: dict[str, Any], shown: Any) -> None:
        """Write the line of one record in its JSON form, with `shown` in place of its data."""
        type_ = form["type"]
        self._names.learn(type_, form["data"])
        words = summary(type_, shown, self._names)
        room = self._terminal.width if self._terminal.interactive else None
        line = fit(_line(form, type_, self._times.of(form["timestamp"]), words), room, colour=self._terminal.colour)
        sys.stdout.write(line.rstrip() + "\n")


def _line(form: dict[str, Any], type_: str, time: str, words: list[Piece]) -> list[Piece]:
    short = type_.removesuffix("_RECORD")
    quiet = type_ == "NO_OP_RECORD"
    return [
        (f"{form['offset']:>8}", Style.QUIET if quiet else Style.NUMBER),
        (f" {form['epoch']:>3}  {time}  ", Style.QUIET),
        (f"{short:<{_TYPE_WIDTH}}  " if words else short, Style.QUIET if quiet else _type_style(type_)),
        *words,
    ]


def _type_style(type_: str) -> Style:
    if not type_.endswith("_RECORD"):
        return Style.EVENT  # a control record
    return _ENDINGS.get(type_.partition("_")[0], Style.PLAIN)


def fit(pieces: Iterable[Piece], room: int | None, *, colour: bool) -> str:
    """The pieces made visible and painted, cut to `room` cells with an ellipsis; None is all the room there is."""
    shown = []
    for piece in pieces:
        content, style = styled(piece)
        if room is not None:
            cells = _cells(content)
            if cells > room:
                shown.append(paint(_cut(content, room), style, colour=colour))
                break
            room -= cells
        shown.append(paint(content, style, colour=colour))
    return "".join(shown)


def _cells(content: str) -> int:
    if content.isascii():
        return len(content)
    from rich.cells import cell_len

    return cell_len(content)


def _cut(content: str, room: int) -> str:
    from rich.cells import set_cell_size

    return set_cell_size(content, max(0, room - 1)).rstrip() + "…" if room > 0 else ""


class EventsView:
    """Writes events as they come.

    Sentences are wrapped beside offset and time on a terminal, never when stdout is piped.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._times = LineTimes(terminal)
        self._offset = -1

    def show(self, event: dict[str, Any]) -> None:
        """Write one event; offset and time stand out where they are other ones than on the line before."""
        when = f"  {self._times.of(event['timestamp'])}  "
        is_new, self._offset = event["offset"] != self._offset, event["offset"]
        offset = f"{event['offset']:>8}"
        style = _STYLES.get(event["kind"], Style.PLAIN)
        first, *others = self._wrapped(event["sentence"], len(offset) + len(when))
        self._terminal.line((offset, Style.NUMBER if is_new else Style.QUIET), (when, Style.QUIET), (first, style))
        for line in others:
            self._terminal.line(" " * (len(offset) + len(when)), (line, style))

    def _wrapped(self, sentence: str, indent: int) -> list[str]:
        shown = visible(sentence)
        if not self._terminal.interactive:
            return [shown]
        room = max(_LEAST_ROOM, self._terminal.width - indent)
        return textwrap.wrap(shown, room, break_on_hyphens=False) or [""]
