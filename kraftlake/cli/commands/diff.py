"""`kraftlake diff`: what differs between two offsets."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.command import Example, argument, option
from kraftlake.cli.options.parameters import MOMENT_OR_EMPTY, SOURCE
from kraftlake.cli.options.shared import LOOK, SAMPLE, Call, command, topics_option
from kraftlake.cli.selection.image_parts import of_topics
from kraftlake.cli.selection.topic_names import any_matches

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.image import MetadataImage


@command(
    "diff",
    section=LOOK,
    question="What changed between two offsets or times?",
    secrets=True,
    examples=(
        Example("what the offsets 4593 to 4639 changed", f"kraftlake diff {SAMPLE} 4592 4639"),
        Example("what changed in two minutes", f"kraftlake diff {SAMPLE} 2026-11-21T07:46Z 2026-11-21T07:48Z"),
        Example(
            "two snapshots, wherever they come from",
            f"kraftlake diff {SAMPLE}/00000000000000003038-0000000002.checkpoint "
            f"--with {SAMPLE}/00000000000000004593-0000000002.checkpoint",
        ),
        Example("what became of a topic", f"kraftlake diff {SAMPLE} 260 4639 --topic elr-a"),
        Example("everything since the beginning", f"kraftlake diff {SAMPLE} -1 260"),
        Example("for other programs", f"kraftlake diff {SAMPLE} 4592 4639 --json"),
    ),
)
@argument(
    "before",
    type=MOMENT_OR_EMPTY,
    required=False,
    metavar="N",
    help="The offset or time of the first image, -1 for the empty one.",
)
@argument("after", type=MOMENT_OR_EMPTY, required=False, metavar="M", help="The offset or time of the second image.")
@topics_option("Only what is of this topic, its partitions and its configs")
@option(
    "--with",
    "other",
    type=SOURCE,
    metavar="SOURCE",
    help="Take the second image from this source; N and M are then the ends of both unless they are given.",
)
@option("--all", "everything", is_flag=True, help="Draw long parts in full, not their beginning.")
def diff(
    call: Call,
    source: str,
    before: int | datetime | None,
    after: int | datetime | None,
    *,
    topics: tuple[str, ...],
    other: str | None,
    everything: bool,
) -> None:
    """Show what differs between the images of SOURCE at N and M, offsets or times; N is -1 for the empty image.

    + is what came, - what went, ~ what changed, with before → after.
    """
    from kraftlake.image import diff_images

    if other is None and (before is None or after is None):
        raise click.UsageError("Give the offsets or times N and M, or another source --with which to compare.")
    opened = call.open(source)
    second = opened if other is None else call.open(other)
    images = _image(call, opened, before), _image(call, second, after)
    found = diff_images(*images)
    if topics:
        found = of_topics(found, topics)
        if found.is_empty() and not any(any_matches(image.topics, topics) for image in images):
            call.terminal.warn(f"no topic matches {', '.join(topics)} at either offset")
    begin, end = (image.provenance.to_json()["timestamp"] for image in images)
    times = {"fromTimestamp": begin, "toTimestamp": end}
    form = {"clusterId": opened.cluster_id} | times | found.to_json(show_secrets=call.show_secrets)
    if opened.cluster_id != second.cluster_id and None not in (opened.cluster_id, second.cluster_id):
        call.terminal.warn(f"{second.name} is of another cluster, {second.cluster_id}")
    if call.as_json:
        call.terminal.json(form)
        return
    from kraftlake.cli.views.diff_view import draw_diff

    call.terminal.render(draw_diff(form, everything=everything or bool(topics)))


def _image(call: Call, source: Source, at: int | datetime | None) -> MetadataImage:
    from kraftlake.image import MetadataImage

    if at == -1:
        return MetadataImage.EMPTY
    call.warn_past_end(source, at)
    return call.replay(source, at).image
