"""`kraftlake generate`: a made-up history of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import FIXED_TIME, LAKE, CountParameter
from kraftlake.cli.options.shared import command
from kraftlake.cli.output.form_rows import EPISODE, list_of

_COUNT = CountParameter(min=1)
_PATTERNS = ("rolling-restart", "zone-outage", "isr-flaps", "reassignment-storm", "topic-churn", "config-changes")
"""The patterns of `kraftlake.generate`, repeated here because the room is imported only on use; a test compares the
two.
"""


def _size(name: str, default: int, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return option(
        f"--{name}", section="The cluster", type=_COUNT, default=default, show_default=True, metavar="N",
        help=text,
    )  # fmt: skip


@command("Make up the history of a cluster of any size, to try things on.", source=False)
@argument("lake", type=LAKE, help="The folder of the new lake.")
@_size("brokers", 6, "How many brokers it has.")
@_size("racks", 3, "How many racks they are in.")
@_size("topics", 50, "How many topics it has.")
@_size("partitions", 12, "How many partitions each topic has.")
@_size("replication-factor", 3, "How many replicas each partition has.")
@option(
    "--records", section="The history", type=_COUNT, default=100_000, show_default=True, metavar="N",
    help="About how many records the log gets; setting up the cluster is always there.",
)  # fmt: skip
@option(
    "--pattern", "patterns", section="The history", type=click.Choice(_PATTERNS), multiple=True,
    help="What happens, again and again in this order; may be given several times. All of them by default.",
)  # fmt: skip
@option(
    "--quiet", section="The history", type=CountParameter(min=0), default=60, show_default=True,
    metavar="SECONDS", help="How long nothing happens between two of them.",
)  # fmt: skip
@option("--start", section="The history", type=FIXED_TIME, metavar="T",
              help="When it begins, by default 2026-01-01T00:00:00Z.")  # fmt: skip
@option(
    "--seed", section="The history", type=CountParameter(min=0), default=0, show_default=True, metavar="N",
    help="The same options and seed give the same log.",
)  # fmt: skip
def generate(
    call: Call, lake: str, *, patterns: tuple[str, ...], quiet: int, start: datetime | None, **options: Any
) -> None:
    """Make LAKE a controlled lake whose log is the made-up history of a cluster, as a controller would write it.

    Brokers are restarted one after the other, a zone fails, followers fall behind, replicas move, topics are created
    and deleted. It prints the offsets of each of these, for `diff`, `image` and `local-changes`.

    Examples:
        # 100,000 records of everything that can happen
        kraftlake generate made-up
        # a large cluster that loses a zone now and then
        kraftlake generate outages --brokers 30 --topics 2000 --records 400000 --pattern zone-outage
        # another one of the same kind
        kraftlake generate other --seed 7 --records 5000
    """
    from kraftlake.cli.output.progress import progress_bars
    from kraftlake.generate.lake import generate_lake
    from kraftlake.generate.plan import PATTERNS, Plan

    plan = Plan(**options, patterns=patterns or PATTERNS, quiet_ms=quiet * 1000)
    if start is not None:
        plan = plan.starting(round(start.timestamp() * 1000))
    with progress_bars(call.terminal) as progress:
        report = generate_lake(lake, plan, lambda done: progress("generating", done, max(done, plan.records))).to_json()
    if not call.answered(report, list_of("episodes", EPISODE)):
        from kraftlake.cli.views.generate_view import draw_generated

        call.terminal.render(*draw_generated(report))
