"""Records as lines of a terminal, as they arrive."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style, paint, styled
from kraftlake.cli.output.visible import visible
from kraftlake.cli.output.words import moment
from kraftlake.cli.selection.log_names import LogNames
from kraftlake.cli.views.record_summary import summary
from kraftlake.records.metadata_records import PartitionChangeRecord, PartitionRecord
from kraftlake.records.redaction import redact_record_json
from kraftlake.records.schema import field_specs

if TYPE_CHECKING:
    from kraftlake.records.log_record import LogRecord

_NARROW = 110
_TYPE_WIDTH = 19
_MOST_SAID = 4096
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
        """The time of a line, padded to the common width."""
        if self._newest is None or self._newest[0] != milliseconds:  # the records of a batch have one time
            time = moment(milliseconds)
            shown = f"{_split(time)[1]:13}" if self._by_day else f"{time:{self._width}}"
            self._newest = milliseconds, shown
        return self._newest[1]

    def day_line(self, milliseconds: int) -> str:
        """The line of a new date before the line of this time, empty for the same date."""
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


def shown_form(record: LogRecord, *, show_secrets: bool) -> dict[str, Any]:
    """The JSON form of a record, its secrets `(redacted)` unless they are to be shown."""
    form = record.to_json()
    return form if show_secrets else form | {"data": redact_record_json(form["type"], form["data"])}


class LogView:
    """Writes records as lines: offset, epoch, time, type, summary; `names` are those known before the first of them.

    Lines are cut to a terminal's width, never when stdout is piped.
    """

    def __init__(self, terminal: Terminal, names: LogNames, *, show_secrets: bool = False) -> None:
        self._terminal = terminal
        self._names = names
        self._show_secrets = show_secrets
        self._times = LineTimes(terminal)
        self._is_plain = not (terminal.interactive or terminal.colour)
        self._rests: dict[tuple[Any, ...], str] = {}
        """The texts of partition records after the partition's name, by all fields that do not name the partition."""

    def show(self, record: LogRecord) -> None:
        """Write the line of the next record."""
        time = self._times.of(record.timestamp)
        if self._is_plain:
            sys.stdout.write(f"{record.offset:>8} {record.epoch:>3}  {time}  {self._text(record)}\n")
            return
        room = self._terminal.width if self._terminal.interactive else None
        line = fit(_line(record, time, self._words(record)), room, colour=self._terminal.colour)
        sys.stdout.write(f"{self._times.day_line(record.timestamp)}{line.rstrip()}\n")

    def _words(self, record: LogRecord) -> list[Piece]:
        form = shown_form(record, show_secrets=self._show_secrets)
        self._names.learn(form["type"], form["data"])
        return summary(record.type, form["data"], self._names)

    def _text(self, record: LogRecord) -> str:
        """Type and summary as plain text."""
        message = record.message
        if isinstance(message, _OF_PARTITIONS):
            return self._text_of_partition(record, message)
        return visible(_short(record.type) + _plain(self._words(record))).rstrip()

    def _text_of_partition(self, record: LogRecord, message: PartitionRecord | PartitionChangeRecord) -> str:
        """The same as `_text` for a partition's record: the text after the name is cached, as many records share it."""
        key = type(message), record.version, _BUT_ITS_NAME[type(message)](message)
        rest = self._rests.get(key)
        if rest is None:
            if len(self._rests) >= _MOST_SAID:
                self._rests.clear()
            rest = self._rests[key] = visible(_plain(self._words(record)[1:]))
        name = f"{self._names.topic(str(message.topic_id))}-{message.partition_id}"
        return f"{_short(record.type)}{visible(name)}{rest}".rstrip()


def _line(record: LogRecord, time: str, words: list[Piece]) -> list[Piece]:
    type_ = record.type
    short = _short(type_)
    quiet = type_ == "NO_OP_RECORD"
    return [
        (f"{record.offset:>8}", Style.QUIET if quiet else Style.NUMBER),
        (f" {record.epoch:>3}  {time}  ", Style.QUIET),
        (short if words else short.rstrip(), Style.QUIET if quiet else _type_style(type_)),
        *words,
    ]


_OF_PARTITIONS = (PartitionRecord, PartitionChangeRecord)


_BUT_ITS_NAME: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    cls: attrgetter(*(name for name, _ in field_specs(cls) if name not in ("topic_id", "partition_id")))
    for cls in _OF_PARTITIONS
}
"""Getters of the fields of a record of a partition without those that name the partition."""


def _plain(words: Iterable[Piece]) -> str:
    return "".join([piece if isinstance(piece, str) else piece[0] for piece in words])


@functools.cache
def _short(type_: str) -> str:
    """The name of a type in its column: `PARTITION_CHANGE     `."""
    return f"{type_.removesuffix('_RECORD'):<{_TYPE_WIDTH}}  "


def _type_style(type_: str) -> Style:
    if not type_.endswith("_RECORD"):
        return Style.EVENT  # a control record
    return _ENDINGS.get(type_.partition("_")[0], Style.PLAIN)


def fit(pieces: Iterable[Piece], room: int | None, *, colour: bool) -> str:
    """The pieces made visible and painted, cut to `room` cells with an ellipsis; None for no limit."""
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
