"""The times of lines that are written as they come."""

from __future__ import annotations

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.words import moment

_NARROW = 110


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
