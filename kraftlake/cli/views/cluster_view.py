"""The output of `kraftlake cluster up`: nodes, counts and the last events, redrawn on a change; lines when piped."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kraftlake.cli.output.formats import JSON, RowWriter
from kraftlake.cli.output.terminal import Terminal
from kraftlake.cli.output.theme import Piece, Style
from kraftlake.cli.output.words import NONE, moment
from kraftlake.cli.selection.tally import times_of
from kraftlake.cli.views.events_view import EventsView, style_of
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import Console, RenderableType
    from rich.live import Live

    from kraftlake.server.cluster_up.cluster_plan import ClusterPlan
    from kraftlake.server.cluster_up.cluster_security import ClusterSecurity
    from kraftlake.server.cluster_up.cluster_state import ClusterState, NodeView
    from kraftlake.server.cluster_up.node_process import NodeProcess

_KEPT_EVENTS: Final = 100
_LAST_LINES: Final = 3
_LONGEST_LINE: Final = 300
_WIDE: Final = 100
"""The minimum width that has room for how a node ended."""
_OF_ALL_LINES: Final = {"event", "level", "timestamp"}
_STYLES: Final = {
    "starting": Style.WARNING,
    "active": Style.GOOD,
    "up": Style.GOOD,
    "fenced": Style.BAD,
    "leaving": Style.WARNING,
    "left": Style.QUIET,
    "down": Style.BAD,
}


class ClusterEvent(NamedTuple):
    """A line among the events: an event of the log, or without an offset, an ended node, its last lines, a warning."""

    offset: int | None
    time: str
    sentence: str
    style: Style


class ClusterView:
    """Shows a cluster from its start to its end; as JSON, only its start with the addresses."""

    def __init__(self, terminal: Terminal, plan: ClusterPlan, cluster_id: str | None, *, as_json: bool) -> None:
        self._terminal = terminal
        self._plan = plan
        self._cluster_id = cluster_id
        self._as_json = as_json
        self._lines = EventsView(terminal)
        self._events: deque[ClusterEvent] = deque(maxlen=_KEPT_EVENTS)
        self._was_up = False
        self._is_leaving = False
        self._live: Live | None = None
        self._drawn: object = None
        if not as_json and terminal.interactive:
            from rich.live import Live

            self._live = Live(
                console=terminal.console(sys.stdout), auto_refresh=False, redirect_stdout=False, redirect_stderr=True
            )
            self._live.start()
        elif not as_json:
            terminal.line(f"starting {len(plan.nodes)} nodes of the lake {plan.lake}; their logs are in {plan.data}")
            sys.stdout.flush()

    @property
    def is_silent(self) -> bool:
        """Whether nothing more is written, so that a closed stdout does not matter."""
        return self._as_json and self._was_up

    def events(self, events: pa.Table) -> None:
        """Show rows of `events/`."""
        if self._live is None:
            if not self._as_json:
                self._lines.show(events)
            return
        columns = [events.column(name).to_pylist() for name in ("offset", "kind", "sentence")]
        for offset, when, kind, sentence in zip(columns[0], times_of(events), *columns[1:], strict=True):
            self._events.append(ClusterEvent(offset, _time_of_day(when), sentence, style_of(kind)))

    def state(self, state: ClusterState) -> None:
        """Show the state of the cluster."""
        if self._live is not None:
            self._terminal.measure()
            size = (self._terminal.width, shutil.get_terminal_size().lines)
            seen = (state, self._events and self._events[-1], size, self._is_leaving)
            if seen != self._drawn:
                self._drawn = seen
                self._live.console.width = self._terminal.width
                events = list(self._events)
                picture = Picture(self._plan, self._cluster_id, state, events, self._is_leaving)
                self._live.update(picture.drawn(self._live.console, size[1]), refresh=True)
        elif state.is_up and not self._was_up:
            self._report_up(state)
        self._was_up = self._was_up or state.is_up
        sys.stdout.flush()

    def ended(self, node: NodeProcess) -> None:
        """Report a node that has ended; on stderr where the end was not requested."""
        if node.ended_well:
            if self._live is None and not self._as_json:
                self._terminal.line(f"{node.plan.name} has left")
            return
        others = "the others are ending, too" if self._is_leaving else "the others go on"
        sentence = f"{node.plan.name} is down ({node.ending}) and is not started again; {others}"
        lines = [_in_words(line) for line in node.last_lines(_LAST_LINES)]
        if self._live is not None:
            now = _time_of_day(int(time.time() * 1000))
            self._events.append(ClusterEvent(None, now, sentence, Style.BAD))
            self._events.extend(ClusterEvent(None, "", line, Style.QUIET) for line in lines)
        if self._live is None or not sys.stderr.isatty():
            self._terminal.warn(sentence)
            for line in lines:
                self._terminal.note(f"{node.plan.name}: {line[:_LONGEST_LINE]}")

    def warning(self, sentence: str) -> None:
        """Show a warning among the events, or on stderr."""
        if self._live is not None:
            now = _time_of_day(int(time.time() * 1000))
            self._events.append(ClusterEvent(None, now, sentence, Style.WARNING))
        if self._live is None or not sys.stderr.isatty():
            self._terminal.warn(sentence)

    def leaving(self) -> None:
        """Report that the nodes are being stopped."""
        self._is_leaving = True
        if self._live is None and not self._as_json:
            self._terminal.line("ending: brokers first, by a controlled shutdown, then the controllers")
            sys.stdout.flush()

    def close(self) -> None:
        """Leave the last picture on the terminal."""
        if self._live is not None:
            self._live.stop()

    def _report_up(self, state: ClusterState) -> None:
        from kraftlake.server.cluster_up.cluster_plan import NodeKind

        bootstrap, controllers = (self._plan.addresses(kind) for kind in (NodeKind.BROKER, NodeKind.CONTROLLER))
        if self._as_json:
            nodes = [
                {"id": node.id, "kind": node.kind.value, "address": node.address, "pid": node.pid}
                for node in state.nodes
            ]
            form: dict[str, Any] = {"bootstrap": bootstrap, "controllers": controllers}
            form |= {"lake": self._plan.lake, "clusterId": self._cluster_id, "data": str(self._plan.data)}
            if self._plan.security is not None:
                form["security"] = _security(self._plan.security)
            RowWriter(JSON).write(form | {"nodes": nodes})
        else:
            self._terminal.line(f"the cluster is up: bootstrap {bootstrap}, controllers {controllers}")
            if self._plan.security is not None:
                pieces = (one if isinstance(one, str) else one[0] for one in _login(self._plan.security))
                self._terminal.line(f"clients take {''.join(pieces)}")


class Picture(NamedTuple):
    """The picture of a cluster on a terminal."""

    plan: ClusterPlan
    cluster_id: str | None
    state: ClusterState
    events: Sequence[ClusterEvent]
    is_leaving: bool

    def drawn(self, console: Console, lines: int) -> RenderableType:
        """The picture for a number of lines, with as many of the last events as fit."""
        from rich.console import Group

        from kraftlake.cli.output.drawing import text
        from kraftlake.server.cluster_up.cluster_plan import NodeKind

        state, bootstrap, security = self.state, self.plan.addresses(NodeKind.BROKER), self.plan.security
        ends = "ending, Ctrl-C again ends at once" if self.is_leaving else "Ctrl-C ends the cluster"
        head = Group(
            text(("cluster ", Style.STRONG), (self.cluster_id or NONE, Style.HEADING), "  lake ", self.plan.lake),
            text(("bootstrap ", Style.STRONG), (bootstrap, Style.NAME)),
            *([] if security is None else [text(("clients take ", Style.STRONG), *_login(security))]),
            text(),
            _nodes(state, wide=console.width >= _WIDE),
            text(),
            text(*_log(state)),
            text(*_counts(state)),
            text(),
        )
        foot = text((f"{ends}; the logs of nodes are in {self.plan.data}", Style.QUIET))
        taken = sum(len(console.render_lines(part)) for part in (head, foot))
        room = max(1, lines - taken - 1)  # the cursor is below the last line
        return Group(head, _events(self.events[-room:]), foot)


def _login(security: ClusterSecurity) -> list[Piece]:
    """How clients come in, and the files that they take."""
    files = (security.librdkafka_properties, security.python_arguments)
    return [
        (str(security.client_properties), Style.NAME),
        (f", {', '.join(file.name for file in files)}: ", Style.PLAIN),
        f"{security.protocol}, {security.mechanism}, user {security.user}",
    ]


def _security(security: ClusterSecurity) -> dict[str, str]:
    return {
        "protocol": security.protocol,
        "mechanism": security.mechanism,
        "user": security.user,
        "clientProperties": str(security.client_properties),
        "librdkafkaProperties": str(security.librdkafka_properties),
        "kafkaPython": str(security.python_arguments),
    }


def _time_of_day(milliseconds: int) -> str:
    return moment(milliseconds).partition(" ")[2]


def _in_words(line: str) -> str:
    """A line of a node's output, without the parts for programs."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    if not isinstance(entry, dict) or "event" not in entry:
        return line
    more = [f"{key}={value}" for key, value in entry.items() if key not in _OF_ALL_LINES]
    return " ".join([str(entry["event"]), *more])


def _nodes(state: ClusterState, *, wide: bool) -> RenderableType:
    from kraftlake.cli.output.drawing import table, text

    numbers = ("leads", "follows", "out of ISR", "high watermarks", "pid")
    rows = table("node", "address", "state", *numbers, right=numbers, whole="address")
    for node in state.nodes:
        style = _STYLES.get(node.state.value, Style.PLAIN)
        counts = node.counts
        out = 0 if counts is None else counts.out_of_isr
        rows.add_row(
            text((node.name, Style.STRONG)),
            text((node.address, Style.NAME)),
            text((node.state.value, style), *(_ending(node) if wide else ())),
            text((NONE if counts is None else str(counts.led), Style.NUMBER)),
            text((NONE if counts is None else str(counts.followed), Style.NUMBER)),
            text((NONE if counts is None else str(out), Style.WARNING if out else Style.NUMBER)),
            text((NONE if node.offsets is None else f"{node.offsets.high_watermarks:,}", Style.NUMBER)),
            text((NONE if node.pid is None else str(node.pid), Style.QUIET)),
        )
    return rows


def _ending(node: NodeView) -> list[Piece]:
    return [(f", {node.ending}", Style.QUIET)] if node.ending is not None and node.state.value == "down" else []


def _log(state: ClusterState) -> list[Piece]:
    log = state.log
    leader: Piece = ("nobody leads it", Style.BAD)
    if state.leader is not None:
        leader = (f"led by controller {state.leader} in epoch {log.epoch}", Style.GOOD)
    pieces: list[Piece] = [("log ", Style.STRONG), "offset ", (str(max(log.offset, 0)), Style.NUMBER), ", ", leader]
    if log.timestamp >= 0:
        pieces.append((f", last record {_time_of_day(log.timestamp)}", Style.QUIET))
    if log.trouble is not None:
        pieces.append((f", {log.trouble}", Style.WARNING))
    return pieces


def _counts(state: ClusterState) -> list[Piece]:
    counts = state.log.counts
    offline, out, fenced = counts.offline_partitions_count, state.replicas_out_of_isr, counts.fenced_broker_count
    topics, partitions = counts.global_topic_count, counts.global_partition_count
    return [
        f"{counted(topics, 'topic')}, {counted(partitions, 'partition')}: ",
        (f"{offline} offline", Style.BAD if offline else Style.GOOD),
        ", ",
        (f"{counted(out, 'replica')} out of ISR", Style.WARNING if out else Style.GOOD),
        ", ",
        (counted(fenced, "fenced broker"), Style.BAD if fenced else Style.GOOD),
    ]


def _events(events: Sequence[ClusterEvent]) -> RenderableType:
    from rich.table import Table

    from kraftlake.cli.output.drawing import text

    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right", no_wrap=True)
    rows.add_column(no_wrap=True)
    rows.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for event in events:
        sentence = text((event.sentence, event.style))
        rows.add_row(
            text(("" if event.offset is None else str(event.offset), Style.NUMBER)),
            text((event.time, Style.QUIET)),
            sentence,
        )
    return rows
