"""`kraftlake diff`: the differences between two offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import argument, option
from kraftlake.cli.options.parameters import MOMENT_OR_EMPTY, SOURCE
from kraftlake.cli.options.shared import (
    brokers_option,
    check_hosted,
    command,
    cut_options,
    hosted_option,
    last_option,
    partitions_option,
    topics_option,
)
from kraftlake.cli.output.form_rows import changes_of
from kraftlake.cli.selection.diff_entries import DiffSelection
from kraftlake.runtime.moments import LogTime

if TYPE_CHECKING:
    from datetime import datetime

    from kraftlake.api import Source
    from kraftlake.cli.selection.cut import Cut
    from kraftlake.image.diff import ImageDiff
    from kraftlake.image.metadata_image import MetadataImage
    from kraftlake.replay.comparing.log_comparison import LogComparison


@command("What changed between two offsets or times?", secrets=True, long=True)
@argument(
    "first",
    type=MOMENT_OR_EMPTY,
    required=False,
    metavar="N",
    help="The offset or time of the first image, -1 for the empty one.",
)
@argument(
    "last",
    type=MOMENT_OR_EMPTY,
    required=False,
    metavar="M",
    help="The offset or time of the second image; the end of the log where N counts back from there (now-15m, 07:46).",
)
@last_option
@topics_option("Only what is of this topic, its partitions and its configs")
@partitions_option("Only this partition, and that its topic came or went")
@brokers_option("Only what is of this broker itself: registration, fencing, configs")
@hosted_option
@option(
    "--with",
    "other",
    type=SOURCE,
    help="Take the second image from this source; N and M are then the ends of both unless they are given. The answer "
    "says whether the two logs are one history, and where they part.",
)
@cut_options("Draw long parts in full, not their beginning.")
def diff(
    call: Call,
    source: str,
    first: int | datetime | LogTime | None,
    last: int | datetime | LogTime | None,
    *,
    topics: tuple[str, ...],
    partitions: tuple[str, ...],
    brokers: tuple[int, ...],
    hosted: bool,
    other: str | None,
    cut: Cut,
) -> None:
    """Show what differs between the images of SOURCE at N and M, offsets or times; N is -1 for the empty image.

    + is what came, - what went, ~ what changed, with before → after. --limit and --tail count these lines, in all parts
    together; the JSON is one object and always whole.

    Examples:
        # what the offsets 4593 to 4639 changed
        kraftlake diff {SAMPLE} 4592 4639
        # what changed in two minutes
        kraftlake diff {SAMPLE} 07:46 07:48
        # what the last minute changed of a broker
        kraftlake diff {SAMPLE} --last 1m --broker 3
        # two snapshots, wherever they come from
        kraftlake diff {SAMPLE}/00000000000000003038-0000000002.checkpoint --with
        {SAMPLE}/00000000000000004593-0000000002.checkpoint
        # what became of a topic
        kraftlake diff {SAMPLE} 260 4639 --topic elr-a
        # everything since the beginning
        kraftlake diff {SAMPLE} -1 260
        # the first ten changes of many
        kraftlake diff {SAMPLE} -1 260 --limit 10
        # for other programs
        kraftlake diff {SAMPLE} 4592 4639 --json
    """
    from kraftlake.image.diff import diff_images

    if other is None and (first is None or (last is None and not isinstance(first, LogTime))):
        raise click.UsageError("Give the offsets or times N and M, or another source --with which to compare.")
    call.check_whole(cut)
    check_hosted(brokers, hosted=hosted)
    opened = call.open(source)
    second = opened if other is None else call.open(other)
    logs = None if second is opened else _comparison(call, opened, second)
    images = image_at(call, opened, first), image_at(call, second, last)
    call.note_ignored(*images)
    found = DiffSelection(topics, partitions, brokers, hosted).of(diff_images(*images), *images)
    sources = [opened] if second is opened else [opened, second]
    call.check_names(*sources, topics=topics, partitions=partitions, brokers=brokers, found=not found.is_empty())
    if opened.cluster_id != second.cluster_id and None not in (opened.cluster_id, second.cluster_id):
        call.terminal.warn(f"{second.name} is of another cluster, {second.cluster_id}")
    if topics or partitions:
        cut = cut._replace(everything=True)
    show_diff(call, opened.cluster_id, images, found, cut, logs=logs)


def show_diff(
    call: Call,
    cluster_id: str | None,
    images: tuple[MetadataImage, MetadataImage],
    found: ImageDiff,
    cut: Cut,
    *,
    logs: LogComparison | None = None,
) -> None:
    """Write the differences between two images, and where they come from two logs, how the logs compare."""
    begin, end = (image.provenance.to_json()["timestamp"] for image in images)
    times = {"fromTimestamp": begin, "toTimestamp": end}
    form = {"clusterId": cluster_id} | times | found.to_json(show_secrets=call.show_secrets)
    compared = form if logs is None else form | {"logs": logs.to_json()}
    if not call.answered(compared, lambda form: changes_of(form, cut)):
        from kraftlake.cli.views.diff_view import draw_diff

        call.terminal.render(draw_diff(form, cut))


def _comparison(call: Call, one: Source, other: Source) -> LogComparison:
    """The comparison of the readable logs of two sources; writes a sentence where text is asked for."""
    from kraftlake.replay.comparing.histories import compare_copies
    from kraftlake.replay.comparing.log_comparison import compare_logs
    from kraftlake.replay.comparing.log_copy import LogCopy, read_copy
    from kraftlake.replay.comparing.words import comparison_sentence, held_words
    from kraftlake.runtime.errors import CorruptDataError

    try:
        found = compare_logs(one.reader, other.reader)
    except CorruptDataError as fault:
        call.terminal.warn(f"the logs are compared up to a fault only: {fault}")
        found = compare_copies(*(read_copy(LogCopy(path=each.path), each.reader) for each in (one, other)))
    have_logs = all(source.reader.end_offset > source.reader.start_offset for source in (one, other))
    if call.in_words and (have_logs or found.differs):
        call.terminal.line(comparison_sentence(found, one.path, other.path))
        for source, held in zip((one, other), found.alone, strict=True):
            if held is not None:
                call.terminal.line(f"  · {source.path}: alone {held_words(found, held)}")
    return found


def image_at(call: Call, source: Source, at: int | datetime | LogTime | None) -> MetadataImage:
    """The image at a moment, the empty one at -1."""
    from kraftlake.image.metadata_image import MetadataImage

    if at == -1:
        return MetadataImage.EMPTY
    call.warn_past_end(source, at)
    return call.replay(source, at).image
