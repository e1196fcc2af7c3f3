"""`kraftlake spark`: jobs that run on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.command import Argument, Example, Group, Option
from kraftlake.cli.options import Call, command
from kraftlake.cli.parameters import LAKE
from kraftlake.cli.sections import ENGINE

if TYPE_CHECKING:
    from kraftlake.spark_jobs import ReplayResult

_INTERVAL_PREFIX = "processing-time="


@click.group(
    "spark",
    cls=Group,
    section=ENGINE,
    short_help="Run a Spark job over a lake.",
    examples=(Example("replay a lake's log into tables", "kraftlake spark replay lake"),),
)
def spark() -> None:
    """Run a Spark job over a lake. Needs Java 17 or newer; no other command does."""


@command(
    "replay",
    question="Replay a lake's log by a structured stream into images and tables.",
    section="Jobs",
    source=False,
    secrets=True,
    examples=(
        Example("everything that is there, then end", "kraftlake spark replay lake"),
        Example("one file of the log in a micro-batch", "kraftlake spark replay lake --max-files-per-trigger 1"),
        Example(
            "go on with what is appended, until interrupted",
            "kraftlake spark replay lake --trigger 'processing-time=2 seconds'",
        ),
    ),
)
@click.argument("lake", cls=Argument, type=LAKE, help="The folder of a lake that `kraftlake import` made.")
@click.option(
    "--trigger",
    cls=Option,
    default="available-now",
    metavar="WHEN",
    show_default=True,
    help="available-now ends when all is replayed; processing-time=INTERVAL goes on until it is interrupted.",
)
@click.option(
    "--max-files-per-trigger",
    "max_files",
    cls=Option,
    type=click.IntRange(min=1),
    metavar="N",
    help="How many files of the log a micro-batch takes.",
)
@click.option(
    "--checkpoint",
    cls=Option,
    metavar="DIR",
    help="The stream's checkpoint, in the lake by default. Losing it loses nothing.",
)
def replay(call: Call, lake: str, *, trigger: str, max_files: int | None, checkpoint: str | None) -> None:
    """Replay what the log of LAKE holds beyond the last run, and show the cluster at its end.

    A Spark structured stream makes one metadata delta of each log batch; what each broker was told to do goes into
    the table local_changes/, images into snapshots/. The result depends on the log alone: a run that was killed, or
    whose checkpoint was deleted, is simply run again.
    """
    from kraftlake.cli.views.progress_view import progress_bars
    from kraftlake.spark_jobs import run_replay

    with progress_bars(call.terminal) as progress:
        progress("starting", 0, 0)
        result = run_replay(
            lake,
            trigger=trigger.removeprefix(_INTERVAL_PREFIX),
            max_files_per_trigger=max_files,
            checkpoint=checkpoint,
            on_progress=lambda offset, end: progress("replaying", offset + 1, end),
        )
    if result.unwritable:
        call.terminal.warn(f"the newest image has no snapshot: {result.unwritable}")
    _show(call, lake, result)


def _show(call: Call, lake: str, result: ReplayResult) -> None:
    from kraftlake.image.json_form import image_to_json

    summary = _summary(result)
    image = image_to_json(result.image, show_secrets=call.show_secrets)
    if call.as_json:
        call.terminal.json({**summary, "image": image})
        return
    import kraftlake
    from kraftlake.cli.views.image_view import draw_image
    from kraftlake.cli.views.spark_view import show_replay

    show_replay(call.terminal, summary)
    cluster_id = kraftlake.open(lake).cluster_id
    timestamp = result.image.provenance.timestamp
    call.terminal.render(draw_image(image, cluster_id=cluster_id, timestamp=timestamp, everything=False))


def _summary(result: ReplayResult) -> dict[str, Any]:
    return {
        "from": result.base_offset,
        "offset": result.offset,
        "batches": result.batches,
        "deltas": result.deltas,
        "localChangeRows": result.local_change_rows,
        "snapshots": list(result.snapshots),
        "microBatches": result.micro_batches,
    }


spark.add_command(replay)
