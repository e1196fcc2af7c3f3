"""`kraftlake stability`: how often something happened, hour by hour or by broker, against the cluster's own past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.shared import command, range_options
from kraftlake.cli.output.formats import Table

if TYPE_CHECKING:
    from kraftlake.runtime.moments import Moment

_COLUMNS = ("kind", "count", "orderly", "median", "level")


@command("Is the cluster as stable as it was?")
@range_options
@option("--by", type=click.Choice(["hour", "broker"]), default="hour", help="A row for each hour, or each broker.")
@option("--unusual", is_flag=True, help="Only what is above its level.")
def stability(call: Call, source: str, *, first: Moment | None, last: Moment | None, by: str, unusual: bool) -> None:
    """Count what happened in a range, by default the whole log, and say what is above the level of the past.

    Counted are fencings and starts of brokers, lost leaderships, unclean elections, replicas that left and joined ISRs,
    and epochs of the quorum. Orderly is what a controlled shutdown explains, or the return of a leadership to the
    preferred replica; the rest is compared with the hours before the range, or if these are fewer than 6, with all
    hours of the log. An hour is unusual above the median plus three times the spread (1.4826 times the median absolute
    deviation), above three times the median, and above 4: above 2 for fencings, starts and epochs, above 0 for unclean
    elections. Of a broker the hours are counted that are unusual for it. docs/stability.md has more.

    Examples:
        # what happened in each hour
        kraftlake stability {SAMPLE}
        # which broker it happened to
        kraftlake stability {SAMPLE} --by broker
        # the last day, against the days before it
        kraftlake stability {SAMPLE} --last 1d --unusual
        # for other programs
        kraftlake stability {SAMPLE} --by broker --json
    """
    opened = call.open(source)
    with call.suggest_lenient():
        found = opened.stability(first, last, by=by, lenient=not call.strict)
    counts = [one for one in found.counts if one.unusual or not unusual]
    call.warn_skipped(found.skipped)
    if not call.in_words:
        name = "unusual" if by == "hour" else "unusualHours"
        call.write_rows(Table((by, *_COLUMNS, name), (one.to_json(by) for one in counts)))
        return
    from kraftlake.cli.views.stability_view import show_stability

    show_stability(call.terminal, found, counts)
