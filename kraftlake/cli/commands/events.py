"""`kraftlake events`: the events of a cluster, as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.event_filters import event_filters
from kraftlake.cli.options.shared import check_hosted, command, cut_options, range_options
from kraftlake.cli.options.witnesses import witness_options
from kraftlake.cli.output.formats import Table
from kraftlake.cli.output.theme import Style
from kraftlake.cli.selection.event_selection import EventSelection, first_rows, last_rows
from kraftlake.cli.selection.tally import COUNTED_BY, held_lines, tally_of_events

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.cli.selection.cut import Cut
    from kraftlake.diagnosis.attribution.attribution import Attribution
    from kraftlake.diagnosis.attribution.witnesses import Witnesses
    from kraftlake.runtime.moments import Moment


@command("What happened in the cluster, in sentences?", secrets=True, long=True)
@range_options
@event_filters
@cut_options("On a terminal: each event, not counts, however many there are.")
@option("--count-by", type=click.Choice(COUNTED_BY), help="Count the events instead of showing them.")
@witness_options
def events(
    call: Call,
    source: str,
    *,
    first: Moment | None,
    last: Moment | None,
    hosted: bool,
    cut: Cut,
    count_by: str | None,
    witnesses: Witnesses | None,
    **names: tuple[Any, ...],
) -> None:
    """Show what happened in the cluster: leader changes, replicas out of sync, fenced brokers and more.

    An event is what a log batch, or a whole metadata transaction, changed of one thing: leaders, ISRs, reassignments,
    brokers, topics, configs, quotas, ACLs, features. `kraftlake spark events` writes the same as a table;
    docs/reference/tables.md lists the kinds. Sensitive configs are shown as (redacted) unless --show-secrets is given.

    Examples:
        # what happened in a minute
        kraftlake events {SAMPLE} --from 07:46 --to 07:47
        # how much of what in the last three minutes
        kraftlake events {SAMPLE} --last 3m --count-by kind
        # everything that a partition went through
        kraftlake events {SAMPLE} --partition t-22-3h4-2
        # which topic had an id, and when
        kraftlake events {SAMPLE} --topic-id nANz2uTcTHue83qLIJ1OVA --kind 'topic_*'
        # which broker was fenced when
        kraftlake events {SAMPLE} --kind fenced,unfenced
        # which partitions lost their leaders
        kraftlake events {SAMPLE} --kind offline --topic 't-2*'
        # a broker's last hundred events, and those of its partitions
        kraftlake events {SAMPLE} --broker 3 --hosted --tail 100
        # what became of a user's ACLs, credentials and quotas
        kraftlake events {SAMPLE} --principal User:p523
        # for other programs, one JSON object a line
        kraftlake events {SAMPLE} --broker 3 --json
        # who changed what, by the authorizer log of the controller
        kraftlake events samples/authorized/log/__cluster_metadata-0 --from 54
        --log-tz UTC --authorizer-log samples/authorized/node-1/kafka-authorizer.log.gz
        # for a ticket
        kraftlake events {SAMPLE} --kind offline --limit 9 --output markdown
    """
    if count_by is not None and cut.is_cut:
        raise click.UsageError(
            "--limit and --tail cut the events that are shown, and --count-by counts all: give either."
        )
    if count_by is not None and witnesses is not None:
        raise click.UsageError("Those who made events are shown beside each, and --count-by counts them: give either.")
    check_hosted(names["brokers"], hosted=hosted)
    opened = call.open(source)
    attribution = call.attribution(opened, witnesses)
    wanted = EventSelection(**names, hosted=hosted)
    in_range = opened.events(
        first, last, show_secrets=call.show_secrets, lenient=not call.strict, of_brokers=wanted.of_brokers
    )
    if first is None:
        call.warn_changes_begin(opened, "events begin")
    read = in_range.tables()
    tables: Iterator[pa.Table] = (table for table in map(wanted.among, read) if len(table))
    if cut.limit is not None:
        tables = first_rows(tables, cut.limit)
    if cut.tail is not None:
        tables = last_rows(tables, cut.tail)
    shown = next(tables, None)
    of_that_kind = " of that kind" if any(names.values()) else ""
    del names["kinds"], names["principals"]
    if shown is None:
        read.close()
        call.check_names(opened, **names, found=False)
    if shown is not None or not call.in_words:
        found = chain([] if shown is None else [shown], tables)
        _show(call, opened.cluster_id, found, count_by, attribution, whole=cut.is_given)
    else:
        call.terminal.line((f"nothing{of_that_kind} happened", Style.QUIET))
    read.close()
    if shown is not None:
        call.check_names(opened, **names, found=True)
    call.warn_skipped(in_range.skipped)


def _show(
    call: Call,
    cluster_id: str | None,
    tables: Iterator[pa.Table],
    count_by: str | None,
    attribution: Attribution | None,
    *,
    whole: bool,
) -> None:
    """Write events as lines, or their counts where requested or where a terminal would get very many lines."""
    from kraftlake.cli.views.events_view import EventsView, rows_of_events

    if not call.in_words and count_by is None:
        call.write_rows(rows_of_events(cluster_id, tables, attribution))
        return
    from kraftlake.cli.views.tally_view import show_flood, show_tally

    if count_by is not None:
        tally = tally_of_events(tables, count_by)
        counts = ({"clusterId": cluster_id, count_by: key, "events": count} for key, count in tally.ranked())
        if call.in_words:
            show_tally(call.terminal, tally, "event")
        else:
            call.write_rows(Table(("clusterId", count_by, "events"), counts))
        return
    if call.terminal.interactive and not whole:
        held, rest, is_flood = held_lines(tables, len)
        tables = chain(held, rest)
        if is_flood:
            narrower = "--last, --from, --kind, --topic and --broker"
            show_flood(call.terminal, tally_of_events(tables, "kind"), "event", narrower)
            return
    view = EventsView(call.terminal, attribution)
    with call.terminal.paged():
        for table in tables:
            view.show(table)
