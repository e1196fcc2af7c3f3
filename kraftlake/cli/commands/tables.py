"""`kraftlake tables`: updates a lake's derived tables to the end of its log, without Spark."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kraftlake.cli.faults import stop_at_signals
from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.observing import metrics_at, metrics_options
from kraftlake.cli.options.parameters import LAKE, MOMENT, MeasureParameter
from kraftlake.cli.options.shared import command, schemas_option
from kraftlake.cli.views.reports import show_run
from kraftlake.runtime.moments import LogTime
from kraftlake.runtime.process_setup import configure_process
from kraftlake.runtime.words import counted

if TYPE_CHECKING:
    from datetime import datetime

    from kraftlake.runtime.metrics_address import MetricsAddress
    from kraftlake.tables.catch_up.table_run import RunResult


@command("Bring a lake's derived tables up to its log's end, without Spark.", source=False)
@argument("lake", type=LAKE, help="The folder of a lake that `kraftlake import` made, or its URI.")
@argument("names", nargs=-1, metavar="[TABLE]...", help="Tables to bring up to date; all if none.")
@option("--follow", is_flag=True, help="Go on with what is appended to the log.")
@option(
    "--poll",
    type=MeasureParameter(min=0.01),
    metavar="SECONDS",
    help="With --follow: how often to look, 1 if not given.",
)
@schemas_option
@metrics_options("With --follow: ")
def tables(
    call: Call,
    lake: str,
    names: tuple[str, ...],
    *,
    follow: bool,
    poll: float | None,
    metrics: MetricsAddress | None,
    insecure_metrics: bool,
) -> None:
    """Bring the derived tables of LAKE up to the end of its log, in this process: no Spark and no JVM.

    TABLE is local_changes, partition_history, topic_history, broker_history, config_history, acl_history,
    quota_history, feature_history, scram_history, controller_history, token_history, quorum_history, voter_history,
    directory_history, events, cluster_metrics or records. Without one all are brought up to date, records only where
    the lake has it, and the lake's snapshots are written. Each table goes on from its own last offset; a run that was
    killed is simply run again. `kraftlake spark JOB` does the same by a Spark job.

    Examples:
        # every derived table, and the snapshots
        kraftlake tables lake
        # only what happened, and what each partition was
        kraftlake tables lake events partition_history
        # every record in typed columns, for SQL
        kraftlake tables lake records
        # keep them up to date until interrupted
        kraftlake tables lake --follow
        # the same, with metrics for Prometheus
        kraftlake tables lake --follow --metrics 9400
    """
    if poll is not None and not follow:
        raise click.UsageError("--poll belongs to --follow.")
    address = metrics_at(metrics, insecure=insecure_metrics)
    if address is not None and not follow:
        raise click.UsageError("--metrics belongs to --follow.")
    configure_process()
    from kraftlake.cli.output.progress import progress_bars
    from kraftlake.tables.catch_up.updating import update_tables

    if follow:
        _follow(call, lake, names, poll or 1.0, address)
        return
    with progress_bars(call.terminal) as progress:
        result = update_tables(
            lake, names or None, on_progress=lambda offset, end: progress("replaying", offset + 1, end)
        )
    if result.unwritable:
        call.terminal.warn(f"the newest image has no snapshot: {result.unwritable}")
    call.answer({"lake": lake, **result.to_json()}, show_run)


def _follow(call: Call, lake: str, names: tuple[str, ...], poll: float, metrics: MetricsAddress | None) -> None:
    """Keep the tables up to date until a signal; changes read by then are committed."""
    import attrs

    from kraftlake.server.observed_lake import ObservedLake, observed_lake
    from kraftlake.tables.catch_up.updating import update_tables

    before: RunResult | None = None

    def show(done: RunResult) -> None:
        nonlocal before
        observed.wrote(done)
        first = done.first_offset if before is None else before.offset + 1
        rows = {name: count - (before.rows[name] if before else 0) for name, count in done.rows.items()}
        before = attrs.evolve(done, rows=dict(done.rows))
        if not call.in_words:
            call.row_writer.write({"lake": lake, "firstOffset": first, "offset": done.offset, "rows": rows})
        elif first > done.offset:
            call.terminal.line("followed  nothing new yet")
        else:
            written = counted(sum(rows.values()), "row")
            call.terminal.line(f"followed  offsets {first} to {done.offset}: {written}")
        sys.stdout.flush()

    with observed_lake(lake, metrics, ObservedLake.update_tables) as observed, stop_at_signals() as stop:
        update_tables(lake, names or None, stop=stop, poll=poll, on_update=show)


@command("Remove the beginning of a lake's derived tables.", name="tables trim", source=False)
@argument("lake", type=LAKE, help="The folder of a lake, or its URI.")
@argument("names", nargs=-1, metavar="[TABLE]...", help="Tables to trim; all if none.")
@option(
    "--before",
    type=MOMENT,
    required=True,
    help="Keep what is known from this offset or time.",
)
@option("--yes", is_flag=True, help="Don't ask.")
def tables_trim(call: Call, lake: str, names: tuple[str, ...], *, before: int | datetime | LogTime, yes: bool) -> None:
    """Remove from derived tables of LAKE what they know of the offsets below N alone.

    Rows of events, local_changes and records below N go, of histories the states that ended by then, of
    cluster_metrics the counts that no longer held. All later questions are answered as before; `state_at` says where a
    table begins. What the log still holds can be made again by deleting a table's folder; what `log trim` removed
    can't. `kraftlake log vacuum` frees the space.

    Examples:
        # what the tables know of the offsets below 3532
        kraftlake tables trim lake --before 3532 --yes
        # events of before a day, unasked
        kraftlake tables trim lake events --before 2026-11-21 --yes
    """
    from kraftlake.tables.trimming import trim_tables

    offset = before if isinstance(before, int) else _offset_since(call, lake, before)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("The command can only ask whether to remove rows in a terminal: give --yes.")
    if not yes:
        tables_named = ", ".join(names) or "all derived tables"
        question = f"Remove what {tables_named} of {lake} know of the offsets below {offset}?"
        click.confirm(question, abort=True, err=True)
    removed = trim_tables(lake, offset, names or None)
    if call.answered({"lake": lake, "before": offset, "rows": removed}):
        return
    if not removed:
        call.terminal.line(f"trimmed  nothing: {lake} has no derived tables")
    for number, (name, rows) in enumerate(removed.items()):
        call.terminal.line(f"{'' if number else 'trimmed':<9}{name}/  {counted(rows, 'row')} removed")


def _offset_since(call: Call, lake: str, time: datetime | LogTime) -> int:
    """The offset after the last one before `time`; read from the tables where the log begins later."""
    from kraftlake.tables.trimming import known_offset_since

    source = call.open(lake)
    if isinstance(time, LogTime):
        time = source.time_of(time)
    offset = source.offset_since(time)
    return known_offset_since(lake, time) if offset == source.start_offset > 0 else offset
