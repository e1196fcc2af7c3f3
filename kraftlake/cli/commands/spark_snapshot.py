"""`kraftlake spark snapshot`: a snapshot of a cluster of any size."""

from __future__ import annotations

from kraftlake.cli.options.command import Example, argument, option
from kraftlake.cli.options.parameters import LAKE, OFFSET
from kraftlake.cli.options.shared import Call, command
from kraftlake.cli.views.run_view import show_snapshot


@command(
    "snapshot",
    question="Fold a log of any size into a snapshot, spread over Spark's executors.",
    section="Jobs",
    source=False,
    examples=(
        Example("of the end of the log", "kraftlake spark snapshot lake"),
        Example("of an earlier offset", "kraftlake spark snapshot lake --at-offset 5000000"),
        Example("on a cluster", "kraftlake spark snapshot /shared/lake --master spark://host:7077"),
    ),
)
@argument("lake", type=LAKE, help="The folder of a lake that `kraftlake import` made.")
@option(
    "--at-offset",
    "to_offset",
    type=OFFSET,
    metavar="N",
    help="The last offset that the snapshot holds; the end of the log by default.",
)
@option(
    "--master",
    default="local[*]",
    metavar="URL",
    show_default=True,
    help="Spark's master. Its executors read and write the lake themselves, so all of them must reach it.",
)
def snapshot(call: Call, lake: str, *, to_offset: int | None, master: str) -> None:
    """Fold the log of LAKE up to an offset and keep the image in snapshots/, as every later replay then starts from.

    Goes on from the newest snapshot before that offset. Topics are dealt out by id and folded in parts, so that no
    process holds more than a part of the cluster; what is written are the records that one process would write.
    """
    from kraftlake.cli.output.progress import progress_bars
    from kraftlake.spark_jobs import run_snapshot

    with progress_bars(call.terminal) as progress:
        progress("folding", 0, 0)
        built = run_snapshot(lake, to_offset, master=master)
    call.answer(built.to_json(), show_snapshot)
