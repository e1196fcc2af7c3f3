"""`kraftlake local-changes`: the effect of a metadata delta on one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.parameters import BROKER, MOMENT, MOMENT_OR_EMPTY
from kraftlake.cli.options.shared import command, cut_options, last_option
from kraftlake.cli.output.form_rows import local_changes_of

if TYPE_CHECKING:
    from kraftlake.cli.selection.cut import Cut
    from kraftlake.runtime.moments import Moment


@command("What did a range of offsets mean to a broker: lead, follow, delete?")
@option("--broker", type=BROKER, required=True, help="The broker's id.")
@option(
    "--from",
    "first",
    type=MOMENT_OR_EMPTY,
    help="The offset or time of the image that the change starts from, -1 for the empty one.",
)
@option("--to", "last", type=MOMENT, metavar="M", help="The change's last offset or time, by default the log's.")
@last_option
@cut_options("Draw every partition, not the first of them.")
def local_changes(
    call: Call,
    source: str,
    broker: int,
    first: Moment | None,
    last: Moment | None,
    *,
    cut: Cut,
) -> None:
    """Show what one metadata delta of the offsets after N up to M means to a broker, as Kafka's brokers compute it.

    Partitions to delete, to lead (elected: with a new leader epoch) and to follow, and the log directories assigned, in
    this order. --limit and --tail count the lines of partitions; the JSON is one object and always whole.

    Examples:
        # what a reassignment meant to broker 1
        kraftlake local-changes {SAMPLE} --broker 1 --from 4592 --to 4639
        # what the last minute meant to it
        kraftlake local-changes {SAMPLE} --broker 1 --last 1m
        # the first five partitions
        kraftlake local-changes {SAMPLE} --broker 1 --last 1m --limit 5
        # for other programs
        kraftlake local-changes {SAMPLE} --broker 3 --from -1 --to 5736 --json
    """
    call.check_whole(cut)
    if first is None:
        raise click.UsageError("Give --from, the offset or time that the change starts from, or --last.")
    opened = call.open(source)
    with call.progress() as progress, call.suggest_lenient():
        answer = opened.local_changes(broker, first, last, lenient=not call.strict, progress=progress)
    call.warn_skipped(answer.skipped)
    changes = {"clusterId": opened.cluster_id} | answer.to_json()
    if not any(changes[kind] for kind in ("deletes", "leaders", "followers")):
        where = f"after offset {answer.from_offset} up to {answer.to_offset}"
        call.warn_unregistered(broker, answer.registered_brokers, where=where)
    if not call.answered(changes, lambda form: local_changes_of(form, cut)):
        from kraftlake.cli.views.local_changes_view import draw_local_changes

        call.terminal.render(*draw_local_changes(changes, cut))
