"""Events as lines of a terminal or a pipe, a table of them at a time."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kraftlake.cli.output.formats import Row, Table
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Style, paint
from kraftlake.cli.output.visible import visible
from kraftlake.cli.selection.tally import times_of
from kraftlake.cli.views.lines import LineTimes
from kraftlake.cli.views.who_view import STYLES
from kraftlake.diagnosis.attribution.words import who_words
from kraftlake.runtime.json_names import camel_case

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.diagnosis.attribution.attribution import Attribution

_LEAST_ROOM = 20
_OFFSET_WIDTH = 8
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

    Sentences are wrapped beside offset and time on a terminal, never when stdout is piped. With an `attribution` the
    clients that made an event stand below it.
    """

    def __init__(self, terminal: Terminal, attribution: Attribution | None = None) -> None:
        self._terminal = terminal
        self._attribution = attribution
        self._times = LineTimes(terminal)
        self._offset = -1

    def show(self, events: pa.Table) -> None:
        """Write the lines of rows of `events/`."""
        offsets, kinds, sentences, fields = (
            events.column(name).to_pylist() for name in ("offset", "kind", "sentence", "field")
        )
        sentences_shown = [
            f"{sentence}  acl/{field}" if kind.startswith("acl_") else sentence  # as `blame` takes it
            for kind, sentence, field in zip(kinds, sentences, fields, strict=True)
        ]
        lines = [self._line(*row) for row in zip(offsets, times_of(events), kinds, sentences_shown, strict=True)]
        if self._attribution is not None:
            lines = [f"{line}{self._clients(event)}" for line, event in zip(lines, forms_of(events), strict=True)]
        sys.stdout.write("".join(lines))

    def _clients(self, event: Row) -> str:
        """The lines on those who made an event; none for what no client asks for."""
        assert self._attribution is not None, "an attribution was asked for"
        who = self._attribution.of_event(event)
        indent = " " * (_OFFSET_WIDTH + len(self._times.of(event["timestamp"])) + 4)
        words = who_words(who.to_json()) if who.is_of_client else ()
        colour = self._terminal.colour
        return "".join(f"{indent}{paint(visible(one), STYLES[certainty], colour=colour)}\n" for one, certainty in words)

    def _line(self, offset: int, milliseconds: int, kind: str, sentence: str) -> str:
        """A coloured line; offset and time stand out where they differ from those of the line before."""
        day = self._times.day_line(milliseconds)
        place, when = f"{offset:>{_OFFSET_WIDTH}}", f"  {self._times.of(milliseconds)}  "
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


def rows_of_events(cluster_id: str | None, tables: Iterable[pa.Table], attribution: Attribution | None = None) -> Table:
    """The rows of `events/` as they come in tables, with the clients of each where there is an `attribution`."""
    from kraftlake.tables.events.events_table import EVENTS

    of_cluster = {"clusterId": cluster_id}
    rows = (of_cluster | form for table in tables for form in forms_of(table))
    columns = ("clusterId", *map(camel_case, EVENTS.schema.names))
    if attribution is None:
        return Table(columns, rows)
    return Table((*columns, *attribution.columns), (row | attribution.of_event(row).to_json() for row in rows))


def forms_of(events: pa.Table) -> Iterator[Row]:
    """The rows of `events/` in their JSON form."""
    from kraftlake.api.events import rows_of
    from kraftlake.tables.events.log_events import as_json

    return rows_of(as_json(events))
