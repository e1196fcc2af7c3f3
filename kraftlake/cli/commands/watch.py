"""`kraftlake watch`: events as they are committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.event_filters import event_filters
from kraftlake.cli.options.following import ONLY_PROVEN, POLL_SECONDS, check_committed, following_options, quorum_of
from kraftlake.cli.options.shared import check_hosted, command, from_option, last_option, limit_option
from kraftlake.cli.output.terminal import check_reader
from kraftlake.cli.selection.event_selection import EventSelection, first_rows

if TYPE_CHECKING:
    import threading

    import pyarrow as pa

    from kraftlake.api import Watch
    from kraftlake.cli.views.watch_view import WatchView
    from kraftlake.runtime.moments import Moment


@command("What happens in the cluster right now, as it is committed?", secrets=True)
@from_option
@last_option
@event_filters
@limit_option
@following_options("Of a directory: ")
def watch(
    call: Call,
    source: str,
    *,
    first: Moment | None,
    hosted: bool,
    limit: int | None,
    include_uncommitted: bool,
    quorum: str | None,
    poll: float | None,
    **names: tuple[Any, ...],
) -> None:
    """Show what happens in the cluster as it is committed, until interrupted.

    SOURCE is a lake that another process appends to, the directory of a live node, or HOST:PORT of a live quorum. The
    events are those of
    `kraftlake events`, from now on, or first those since --from or in the time of --last. On a terminal the line below
    them says who leads the quorum, the last offset, and how many partitions are offline and brokers fenced.

    Of a directory it shows what the log itself shows to be committed: up to the newest snapshot or change of leader.
    With --quorum it shows the offsets up to the high watermark as soon as the directory has them. With
    --include-uncommitted it shows everything, and ends where a new leader replaces records.

    Examples:
        # what happens from now on in the cluster whose log a lake gets
        kraftlake watch lake
        # the last 15 minutes first
        kraftlake watch lake --last 15m
        # the directory of a live node, up to the high watermark of its quorum
        kraftlake watch /var/lib/kafka/__cluster_metadata-0 --quorum localhost:9093
        # a live quorum, over the network
        kraftlake watch localhost:9093
        # which partitions lose their leaders
        kraftlake watch lake --kind offline
        # wait until broker 3 is fenced
        kraftlake watch lake --broker 3 --kind fenced --limit 1
        # for other programs, one JSON object a line
        kraftlake watch lake --json
    """
    check_committed(quorum, include_uncommitted=include_uncommitted)
    check_hosted(names["brokers"], hosted=hosted)
    from kraftlake.cli.views.events_view import rows_of_events
    from kraftlake.cli.views.watch_view import WatchView
    from kraftlake.kafka_files.sniffing.source_kind import SourceKind

    wanted = EventSelection(**names, hosted=hosted)
    opened = call.open(source, warn_torn=False)
    view = WatchView(call.terminal, hidden=not call.in_words)
    poll = poll or POLL_SECONDS
    client, asked = (
        quorum_of(quorum, source, opened.cluster_id, view.warn, command_config=call.command_config)
        if quorum
        else (None, None)
    )
    with ExitStack() as stack:
        if client is not None:
            stack.callback(client.close)
        watched = stack.enter_context(
            opened.watch(
                first,
                poll=poll,
                show_secrets=call.show_secrets,
                lenient=not call.strict,
                of_brokers=wanted.of_brokers,
                include_uncommitted=include_uncommitted,
                quorum=None if asked is None else asked.position,
            )
        )
        is_directory = opened.kind is SourceKind.DIRECTORY and opened.observer is None
        if is_directory and not include_uncommitted and not quorum:
            view.warn(ONLY_PROVEN.format("shown"))
        topics = (*wanted.topics, *(name.rpartition("-")[0] for name in wanted.partitions))
        call.warn_unknown_names(watched.image, topics=topics, brokers=wanted.brokers)
        stop = stack.enter_context(stop_at_signals())
        stack.callback(view.close)
        tables = _selected(call, watched, wanted, view, poll=poll, stop=stop)
        shown = tables if limit is None else first_rows(tables, limit)
        if not call.in_words:
            call.write_rows(rows_of_events(opened.cluster_id, shown))
            return
        for table in shown:
            view.show(table)


def _selected(
    call: Call, watched: Watch, wanted: EventSelection, view: WatchView, *, poll: float, stop: threading.Event
) -> Iterator[pa.Table]:
    """The selected events as they arrive, until `stop` is set; after each step the view gets the state."""
    trouble, skipped = None, 0
    while not stop.is_set():
        for table in map(wanted.among, watched.step()):
            if len(table):
                yield table
        state = watched.state
        if state.trouble not in (None, trouble):
            view.warn(f"{state.trouble}; waiting for it to come back")
        if len(watched.skipped) > skipped:
            view.clear()
            call.warn_skipped(watched.skipped[skipped:])
        trouble, skipped = state.trouble, len(watched.skipped)
        view.state(state)
        if not watched.has_more:
            check_reader()
            stop.wait(poll)
