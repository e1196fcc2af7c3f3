"""Events as lines of a terminal or a pipe, a table of them at a time."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kraftlake.cli.output.formats import Table
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style, paint
from kraftlake.cli.output.visible import visible
from kraftlake.cli.selection.tally import times_of
from kraftlake.cli.views.lines import LineTimes

if TYPE_CHECKING:
    import pyarrow as pa

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


def style_of(kind: str) -> Style:
    """The style of the events of a kind."""
    return _STYLES.get(kind, Style.PLAIN)


class EventsView:
    """Writes events as they arrive: offset, time, sentence.

    Sentences are wrapped beside offset and time on a terminal, never when stdout is piped.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._times = LineTimes(terminal)
        self._offset = -1

    def show(self, events: pa.Table) -> None:
        """Write the lines of rows of `events/`."""
        columns = [events.column(name).to_pylist() for name in ("offset", "kind", "sentence")]
        rows = zip(columns[0], times_of(events), columns[1], columns[2], strict=True)
        sys.stdout.write("".join([self._line(*row) for row in rows]))

    def _line(self, offset: int, milliseconds: int, kind: str, sentence: str) -> str:
        """A coloured line; offset and time stand out where they differ from those of the line before."""
        day = self._times.day_line(milliseconds)
        place, when = f"{offset:>8}", f"  {self._times.of(milliseconds)}  "
        is_new, self._offset = offset != self._offset, offset
        style, colour = style_of(kind), self._terminal.colour
        first, *others = self._wrapped(sentence, len(place) + len(when))
        head = paint(place, Style.NUMBER if is_new else Style.QUIET, colour=colour)
        lines = [f"{head}{paint(when, Style.QUIET, colour=colour)}{paint(first, style, colour=colour)}"]
        lines += [" " * (len(place) + len(when)) + paint(other, style, colour=colour) for other in others]
        return day + "\n".join(lines) + "\n"

    def _wrapped(self, sentence: str, indent: int) -> list[str]:
        shown = visible(sentence)
        if not self._terminal.interactive:
            return [shown]
        room = max(_LEAST_ROOM, self._terminal.width - indent)
        return textwrap.wrap(shown, room, break_on_hyphens=False) or [""]


def rows_of_events(cluster_id: str | None, tables: Iterable[pa.Table]) -> Table:
    """The rows of `events/` as they come in tables."""
    from kraftlake.api.events import rows_of
    from kraftlake.tables.events.events_table import EVENTS
    from kraftlake.tables.events.log_events import form_of

    columns = ("clusterId", *form_of(dict.fromkeys(EVENTS.schema.names)))
    of_cluster = {"clusterId": cluster_id}
    return Table(columns, (of_cluster | form_of(event) for table in tables for event in rows_of(table)))
