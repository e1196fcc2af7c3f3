"""`kraftlake image`: the state of the cluster at an offset or a time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from kraftlake.cli.options.call import Call
from kraftlake.cli.options.command import option
from kraftlake.cli.options.shared import (
    brokers_option,
    check_hosted,
    command,
    partitions_option,
    principals_option,
    topic_ids_option,
    topics_option,
)
from kraftlake.cli.output.form_rows import part_of_image
from kraftlake.cli.output.formats import CSV, MARKDOWN
from kraftlake.cli.selection.image_parts import PARTS, ImageSelection
from kraftlake.cli.selection.topic_names import any_matches

if TYPE_CHECKING:
    from kraftlake.api import Source
    from kraftlake.image.metadata_image import MetadataImage


def _only(kind: str, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option for one of TROUBLES."""
    return option(f"--{kind}-partitions", kind.replace("-", "_"), is_flag=True, help=text)


@command("What does the cluster look like, now or at any past moment?", at=True, secrets=True, long=True)
@topics_option("Only this topic")
@topic_ids_option("Only the topic of this id")
@partitions_option("Only this partition")
@brokers_option("Only this broker and the partitions it hosts")
@principals_option("Only what is about this principal: its ACLs, and of a user its credentials and quotas")
@option("--hosted", is_flag=True, help="As in other commands; an image has the partitions of a broker without it, too.")
@_only("unavailable", "Only partitions without a leader: since when, their last leader, and why.")
@_only("under-replicated", "Only partitions with a replica out of sync.")
@_only("under-min-isr", "Only partitions without a leader, or with fewer replicas in sync than min.insync.replicas.")
@_only(
    "at-min-isr",
    "Only partitions with exactly min.insync.replicas in sync. With several of these four options: any of them.",
)
@option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(list(PARTS)),
    metavar="PART",
    help=f"Only this part: {', '.join(PARTS)}. Repeatable.",
)
@option("--since", "with_since", is_flag=True, help="Since when leaders, ISRs, fenced brokers and configs are so.")
@option("--all", "everything", is_flag=True, help="Draw long parts in full, not their beginning.")
def image(
    call: Call,
    source: str,
    *,
    topics: tuple[str, ...],
    topic_ids: tuple[str, ...],
    partitions: tuple[str, ...],
    brokers: tuple[int, ...],
    principals: tuple[str, ...],
    hosted: bool,
    parts: tuple[str, ...],
    with_since: bool,
    everything: bool,
    **only: bool,
) -> None:
    """Show the cluster after replaying the log of SOURCE up to and including an offset, by default its last.

    Brokers, controllers, topics with their partitions, configs, quotas, ACLs, SCRAM credentials, delegation tokens
    and features. Secrets are shown as (redacted) unless --show-secrets is given.

    Examples:
        # the cluster as the log leaves it
        kraftlake image {SAMPLE}
        # as it was after offset 4592
        kraftlake image {SAMPLE} --at-offset 4592
        # as it was a minute before its end
        kraftlake image {SAMPLE} --at-time now-1m
        # two topics, partition by partition
        kraftlake image {SAMPLE} --topic 'big-a,elr-*'
        # which partitions have no leader, since when, and why
        kraftlake image {SAMPLE} --unavailable-partitions
        # which partitions have too few replicas in sync for acks=all
        kraftlake image {SAMPLE} --under-min-isr-partitions
        # since when a topic's leaders and ISRs are so
        kraftlake image {SAMPLE} --topic elr-a --since
        # all ACLs and nothing else
        kraftlake image {SAMPLE} --part acls --all
        # a user's ACLs, credentials and quotas
        kraftlake image {SAMPLE} --principal User:p523
        # for other programs
        kraftlake image {SAMPLE} --at-offset 1059 --json
        # its ACLs for a spreadsheet
        kraftlake image {SAMPLE} --part acls --output csv
    """
    from kraftlake.image.broker_partitions import min_insync_replicas
    from kraftlake.image.partition_health import TROUBLES

    check_hosted(brokers, hosted=hosted)
    if len(parts) > 1 and call.output in (CSV, MARKDOWN):
        raise click.UsageError(f"{call.output} has the rows of one part, by default of topics: give one --part.")
    opened = call.open(source)
    replay = call.replay(opened, call.at)
    call.note_ignored(replay.image)
    troubles = [kind for kind in TROUBLES if only[kind.replace("-", "_")]]
    named = topics + tuple(_name_of(replay.image, id_) for id_ in topic_ids)
    if not _holds(replay.image, named, partitions, brokers):
        call.check_names(
            opened, topics=topics, topic_ids=topic_ids, partitions=partitions, brokers=brokers, found=False
        )
    topics = named
    asked = ImageSelection(parts, topics, brokers, troubles, partitions, principals)
    detailed = everything or bool(topics or troubles or partitions or principals)
    read = asked.topics_to_read(replay.image)
    overview = None
    if read is None and call.in_words and not detailed:
        from kraftlake.cli.views.image_view import overview_of_large

        overview = overview_of_large(replay.image)
        read = None if overview is None else overview.worst
    whole = replay.image.to_json(show_secrets=call.show_secrets, only_topics=read)
    min_isr = functools.cache(functools.partial(min_insync_replicas, replay.image))  # many partitions of one topic
    form = replay.image.provenance.to_json() | asked.cut(whole, min_isr)
    if replay.diverged:
        import attrs

        form["skippedRecords"] = [attrs.asdict(record) for record in replay.skipped]
    call.warn_unknown_names(replay.image, topics=topics, brokers=() if troubles or form.get("topics") else brokers)
    if "unavailable" in troubles:
        _add_leaderless(opened, form, whole["brokers"])
    if any("min-isr" in kind for kind in troubles):
        _add_min_isr(form, min_isr)
    if with_since:
        from kraftlake.diagnosis.since import since_of

        drawn = form if overview is None else {key: part for key, part in form.items() if key != "topics"}
        form["since"] = since_of(opened, drawn, lenient=not call.strict)
    if call.answered(form, lambda form: part_of_image(form, parts[0] if parts else "topics")):
        return
    from kraftlake.cli.views.image_view import draw_image

    call.terminal.render(
        draw_image(
            form,
            everything=detailed,
            brokers=whole["brokers"],
            overview=overview,
            one_table=bool(troubles or partitions) and not topics,
            no_topics=f"no partition is {' or '.join(map(_in_words, troubles))}" if troubles else "none",
        )
    )


def _holds(image: MetadataImage, topics: Sequence[str], partitions: Sequence[str], brokers: Sequence[int]) -> bool:
    """Whether an image has everything requested; otherwise the whole log decides which names are mistakes."""
    for partition in partitions:
        name, _, number = partition.rpartition("-")
        topic = image.topics.get_topic(name)
        if topic is None or int(number) not in topic.partitions:
            return False
    return all(any_matches(image.topics, [pattern]) for pattern in topics) and all(
        broker in image.cluster.brokers for broker in brokers
    )


def _name_of(image: MetadataImage, topic_id: str) -> str:
    """The name of the topic with an id; the id itself where there is none, for the warning that nothing matches."""
    from kraftlake.records.uuid import Uuid

    topic = image.topics.get_topic_by_id(Uuid.from_string(topic_id))
    return topic_id if topic is None else topic.name


def _add_leaderless(source: Source, form: dict[str, Any], brokers: dict[str, Any]) -> None:
    """Add to the form of each partition without a leader since when it has none, its last leader, and the cause."""
    from kraftlake.diagnosis.leaderless import leaderless_since
    from kraftlake.diagnosis.leadership import may_lead

    topics = form.get("topics", {})
    without = {
        name: topic | {"partitions": {n: one for n, one in topic["partitions"].items() if one["leader"] < 0}}
        for name, topic in topics.items()
    }
    found = leaderless_since(source, without, form["offset"])
    for name, topic in without.items():
        for number, partition in topic["partitions"].items():
            known = found.get((name, number))
            partition["leaderless"] = {
                "since": None if known is None else known.since,
                "ledBy": None if known is None else known.led_by,
            } | may_lead(partition, brokers)


def _add_min_isr(form: dict[str, Any], min_isr: Callable[[str], int]) -> None:
    """Add min.insync.replicas of each partition to the form."""
    for name, topic in form.get("topics", {}).items():
        for partition in topic["partitions"].values():
            partition["minIsr"] = min_isr(name)


def _in_words(trouble: str) -> str:
    """One of TROUBLES as the metrics call it: `under min ISR`."""
    return trouble if "isr" not in trouble else trouble.replace("-", " ").replace("isr", "ISR")
