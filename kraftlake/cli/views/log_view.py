"""The log as lines of a terminal: one a record, aligned, as fast as they come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kraftlake.cli.terminal import Terminal
from kraftlake.cli.theme import Style, paint
from kraftlake.cli.views.record_summary import Names, summary
from kraftlake.cli.views.words import Piece, moment
from kraftlake.cli.visible import visible

if TYPE_CHECKING:
    from kraftlake.records.log_record import LogRecord

_TYPE_WIDTH = 19
_NARROW = 110
_ENDINGS = {"REMOVE": Style.BAD, "UNREGISTER": Style.BAD, "ABORT": Style.BAD}


class LogView:
    """Writes records as lines: offset, epoch, time, type, summary; `names` are those known before the first of them.

    A narrow terminal gets the time of day, and a line of its own where the date changes. Lines are cut to a
    terminal's width, never when stdout is piped.
    """

    def __init__(self, terminal: Terminal, names: Names, *, show_secrets: bool) -> None:
        self._terminal = terminal
        self._show_secrets = show_secrets
        self._names = names
        self._day = ""
        self._by_day = terminal.interactive and terminal.width < _NARROW

    def show(self, record: LogRecord) -> None:
        """Write the line of one record."""
        from kraftlake.records.redaction import redact_record_json

        form = record.to_json()
        type_, data = form["type"], form["data"]
        self._names.learn(type_, data)
        shown = data if self._show_secrets else redact_record_json(type_, data)
        time = moment(form["timestamp"])
        if self._by_day:
            day, _, time = time.rpartition(" ")
            if day != self._day:
                self._day = day
                self._write([(f"── {day} UTC ──", Style.QUIET)])
        self._write(self._pieces(form, type_, time, summary(type_, shown, self._names)))

    def _pieces(self, form: dict[str, Any], type_: str, time: str, words: list[Piece]) -> list[Piece]:
        short = type_.removesuffix("_RECORD")
        quiet = type_ == "NO_OP_RECORD"
        return [
            (f"{form['offset']:>8}", Style.QUIET if quiet else Style.NUMBER),
            (f" {form['epoch']:>3}  {time:{12 if self._by_day else 24}}  ", Style.QUIET),
            (
                f"{short:<{_TYPE_WIDTH}}  " if words else short,
                Style.QUIET if quiet else _type_style(short, record_is_control(type_)),
            ),
            *words,
        ]

    def _write(self, pieces: list[Piece]) -> None:
        room = self._terminal.width if self._terminal.interactive else None
        self._terminal.line(fit(pieces, room, colour=self._terminal.colour).rstrip())


def record_is_control(type_: str) -> bool:
    """Whether a type is that of a control record."""
    return not type_.endswith("_RECORD")


def _type_style(short: str, control: bool) -> Style:
    if control:
        return Style.EVENT
    return _ENDINGS.get(short.partition("_")[0], Style.PLAIN)


def fit(pieces: Iterable[Piece], room: int | None, *, colour: bool) -> str:
    """The pieces made visible and painted, cut to `room` cells with an ellipsis; None is all the room there is."""
    shown = []
    for piece in pieces:
        content, style = (piece, Style.PLAIN) if isinstance(piece, str) else piece
        content = visible(content)
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
