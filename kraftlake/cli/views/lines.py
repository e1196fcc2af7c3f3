"""Records as lines of a terminal, as fast as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style, paint, styled
from kraftlake.cli.output.words import moment
from kraftlake.cli.selection.log_names import Names
from kraftlake.cli.views.record_summary import summary

_NARROW = 110
_TYPE_WIDTH = 19
_ENDINGS = {"REMOVE": Style.BAD, "UNREGISTER": Style.BAD, "ABORT": Style.BAD}


class LineTimes:
    """Times in full, or on a narrow terminal times of day, with a line of its own where the date changes."""

    def __init__(self, terminal: Terminal) -> None:
        self._colour = terminal.colour
        self._by_day = terminal.interactive and terminal.width < _NARROW
        self._width = max(24, len(moment(0)))
        self._day = ""
        self._newest: tuple[int, str] | None = None

    def of(self, milliseconds: int) -> str:
        """The time of a line, padded to the width of all."""
        if self._newest is None or self._newest[0] != milliseconds:  # the records of a batch have one time
            time = moment(milliseconds)
            shown = f"{_split(time)[1]:13}" if self._by_day else f"{time:{self._width}}"
            self._newest = milliseconds, shown
        return self._newest[1]

    def day_line(self, milliseconds: int) -> str:
        """The line of a new date before the line of this time, empty where there is none."""
        if not self._by_day:
            return ""
        day = _split(moment(milliseconds))[0]
        if day in ("", self._day):
            return ""
        self._day = day
        return paint(f"── {day}", Style.QUIET, colour=self._colour) + "\n"


def _split(time: str) -> tuple[str, str]:
    """A time of `moment` as its date with the zone, and the time of day: in UTC with its Z."""
    day, _, clock = time.rpartition(" ")
    if not day:
        return "", clock
    return (f"{day} UTC", clock) if clock.endswith("Z") else (f"{day} {clock[12:]}", clock[:12])


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
        sys.stdout.write(f"{self._times.day_line(form['timestamp'])}{line.rstrip()}\n")


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
