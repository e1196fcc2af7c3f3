"""`kraftlake diff`: what differs between two offsets."""

from __future__ import annotations

from datetime import datetime

import click

from kraftlake.cli.command import Argument, Example, Option
from kraftlake.cli.options import SAMPLE, Call, command
from kraftlake.cli.parameters import MOMENT_OR_EMPTY
from kraftlake.cli.sections import LOOK


@command(
    "diff",
    section=LOOK,
    question="What changed between two offsets or times?",
    secrets=True,
    examples=(
        Example("what the offsets 4593 to 4639 changed", f"kraftlake diff {SAMPLE} 4592 4639"),
        Example("what changed in two minutes", f"kraftlake diff {SAMPLE} 2026-11-21T07:46Z 2026-11-21T07:48Z"),
        Example("everything since the beginning", f"kraftlake diff {SAMPLE} -1 260"),
        Example("for other programs", f"kraftlake diff {SAMPLE} 4592 4639 --json"),
    ),
)
@click.argument(
    "before",
    cls=Argument,
    type=MOMENT_OR_EMPTY,
    metavar="N",
    help="The offset or time of the first image, -1 for the empty one.",
)
@click.argument(
    "after", cls=Argument, type=MOMENT_OR_EMPTY, metavar="M", help="The offset or time of the second image."
)
@click.option("--all", "everything", cls=Option, is_flag=True, help="Draw long parts in full, not their beginning.")
def diff(call: Call, source: str, before: int | datetime, after: int | datetime, everything: bool) -> None:
    """Show what differs between the images of SOURCE at N and M, offsets or times; N is -1 for the empty image.

    + is what came, - what went, ~ what changed, with before → after.
    """
    from kraftlake.image import MetadataImage, diff_images

    opened = call.open(source)
    images = [MetadataImage.EMPTY if at == -1 else call.replay(opened, at).image for at in (before, after)]
    form = diff_images(*images).to_json(show_secrets=call.show_secrets)
    if call.as_json:
        call.terminal.json(form)
        return
    from kraftlake.cli.views.diff_view import draw_diff

    call.terminal.render(draw_diff(form, cluster_id=opened.cluster_id, everything=everything))
