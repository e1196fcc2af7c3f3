"""Events as lines of a terminal: offset, time, sentence."""

from __future__ import annotations

import textwrap
from typing import Any

from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style
from kraftlake.cli.output.visible import visible
from kraftlake.cli.views.line_times import LineTimes

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
