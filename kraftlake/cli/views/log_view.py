"""The log as lines of a terminal: one a record, aligned, as fast as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style, paint, styled
from kraftlake.cli.selection.log_names import Names
from kraftlake.cli.views.line_times import LineTimes
from kraftlake.cli.views.record_summary import summary

_TYPE_WIDTH = 19
_ENDINGS = {"REMOVE": Style.BAD, "UNREGISTER": Style.BAD, "ABORT": Style.BAD}


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
