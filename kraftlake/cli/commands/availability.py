"""`kraftlake availability`: how long partitions were offline, or close to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.shared import command, range_options, topics_option
from kraftlake.cli.output.form_rows import list_of
from kraftlake.cli.output.words import moment

if TYPE_CHECKING:
    from kraftlake.diagnosis.availability.availability import Availability
    from kraftlake.runtime.moments import Moment

_BY = ("topic", "partition", "broker")
_COLUMNS = ("seconds", "offlineSeconds", "availablePercent")


@command("How long were partitions offline, and whose loss did it?")
@range_options
@topics_option("Only of this topic")
@option("--by", type=click.Choice(_BY), default="topic", show_default=True, help="What has a row.")
@option("--all", "everything", is_flag=True, help="On a terminal: also rows without any trouble.")
def availability(
    call: Call,
    source: str,
    *,
    first: Moment | None,
    last: Moment | None,
    topics: tuple[str, ...],
    by: str,
    everything: bool,
) -> None:
    """Show how long partitions were offline, led by a fenced broker, under min ISR, or had one replica in sync.

    The times are those of all partitions of a row together, since their creation and until their deletion: available is
    the part that they had a leader. min.insync.replicas is that of the moment, from the topic, the cluster or Kafka's
    default. One in sync has more replicas than that one. By broker, a row has what the losses of a broker began: it was
    fenced, shut down, unregistered, started anew, lost a log directory, or fell out of sync. A time as --from or --to
    is that time itself; where the time of batches goes back, time stands still. Of states as long, the worst counts.

    Examples:
        # how available each topic was
        kraftlake availability {SAMPLE}
        # in a minute
        kraftlake availability {SAMPLE} --from 07:46 --to 07:47
        # which broker's losses cost how much
        kraftlake availability {SAMPLE} --by broker
        # the partitions of some topics, for a spreadsheet
        kraftlake availability {SAMPLE} --topic 't-2*' --by partition --output csv
    """
    opened = call.open(source)
    with call.suggest_lenient():
        found = opened.availability(first, last, by=by, topics=topics, lenient=not call.strict)
    _warn_bounds(call, opened.name, found)
    if topics:
        call.check_names(opened, topics=topics, found=len(found.rows) > 0)
    call.warn_skipped(found.skipped)
    if call.answered(form := found.to_json(), list_of("rows", (by, *_COLUMNS))):
        return
    from kraftlake.cli.views.availability_view import draw_availability

    call.terminal.render(*draw_availability(form, everything=everything))


def _warn_bounds(call: Call, name: str, found: Availability) -> None:
    """Say where the log does not reach as far as the window, and where its clock went back."""
    if found.starts_before_log:
        call.terminal.warn(f"what {name} knows begins at {moment(found.begin)}: the window starts there")
    if found.ends_after_log:
        call.terminal.warn(f"{name} ends at {moment(found.end)}: the window ends there")
    if found.clock_back_ms:
        back = found.clock_back_ms / 1000
        call.terminal.warn(f"the time of batches goes back by up to {back:,} s: time stands still meanwhile")
