"""`kraftlake import`: append what a lake does not have yet."""

from __future__ import annotations

import click

from kraftlake.cli.command import Argument, Example
from kraftlake.cli.options import SAMPLE, Call, command
from kraftlake.cli.parameters import LAKE
from kraftlake.cli.sections import MOVE


@command(
    "import",
    section=MOVE,
    question="Append to a lake what it does not have yet of a log.",
    replays=False,
    examples=(
        Example("make a lake, or bring one up to date", f"kraftlake import {SAMPLE} lake"),
        Example("then ask the lake as if it were the log", "kraftlake image lake --at-offset 4592"),
        Example("what was appended, for scripts", f"kraftlake import {SAMPLE} lake --json"),
    ),
)
@click.argument("lake", cls=Argument, type=LAKE, help="The folder of the lake; made if it does not exist.")
def import_(call: Call, source: str, lake: str) -> None:
    """Append to LAKE what it does not have yet of SOURCE.

    Twice is the same as once. At the first offset that disagrees with the lake (a gap, another epoch, other bytes, or
    another cluster) nothing is changed, and that offset is named.
    """
    from kraftlake.cli.views.import_view import show_import_report
    from kraftlake.cli.views.progress_view import progress_bars
    from kraftlake.replay.import_log import import_source

    opened = call.open(source, tell_torn=False)
    with progress_bars(call.terminal) as progress:
        report = import_source(opened, lake, cluster_id=call.cluster_id, progress=progress)
    form = report.to_json()
    if form["torn"]:
        call.terminal.warn(f"{form['torn']}; everything before it is in the lake")
    if call.as_json:
        call.terminal.json(form)
    else:
        show_import_report(call.terminal, form)
