"""Events as lines of a terminal: offset, time, sentence."""

from __future__ import annotations

import textwrap
from typing import Any

from kraftlake.cli.terminal import Terminal
from kraftlake.cli.theme import Style, paint
from kraftlake.cli.views.words import moment
from kraftlake.cli.visible import visible

_NARROW = 110
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


class EventsView:
    """Writes events as they come.

    A narrow terminal gets the time of day, and a line of its own where the date changes. Sentences are wrapped beside
    offset and time on a terminal, never when stdout is piped.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._day = ""
        self._by_day = terminal.interactive and terminal.width < _NARROW
        self._offset = -1
        self._shown = 0

    def show(self, event: dict[str, Any]) -> None:
        """Write one event; offset and time stand out where they are other ones than on the line before."""
        time = moment(event["timestamp"])
        if self._by_day:
            day, _, time = time.rpartition(" ")
            if day != self._day:
                self._day = day
                self._terminal.line(self._painted(f"── {day} UTC", Style.QUIET))
        is_new, self._offset = event["offset"] != self._offset, event["offset"]
        offset = f"{event['offset']:>8}"
        when = f"  {time:{13 if self._by_day else 24}}  "
        first, *others = self._wrapped(event["sentence"], len(offset) + len(when))
        style = _STYLES.get(event["kind"], Style.PLAIN)
        head = self._painted(offset, Style.NUMBER if is_new else Style.QUIET) + self._painted(when, Style.QUIET)
        self._terminal.line(head + self._painted(first, style))
        for line in others:
            self._terminal.line(" " * (len(offset) + len(when)) + self._painted(line, style))
        self._shown += 1

    def finish(self) -> None:
        """Say so where there was nothing to show."""
        if not self._shown:
            self._terminal.line(self._painted("nothing of that kind happened", Style.QUIET))

    def _wrapped(self, sentence: str, indent: int) -> list[str]:
        shown = visible(sentence)
        if not self._terminal.interactive:
            return [shown]
        room = max(_LEAST_ROOM, self._terminal.width - indent)
        return textwrap.wrap(shown, room, break_on_hyphens=False) or [""]

    def _painted(self, text: str, style: Style) -> str:
        return paint(text, style, colour=self._terminal.colour)
