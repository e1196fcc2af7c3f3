"""`kraftlake events`: what happened in a cluster, in sentences."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

import click

from kraftlake.cli.options.command import Example, option
from kraftlake.cli.options.parameters import BROKER, EVENT_KIND
from kraftlake.cli.options.shared import (
    LOOK,
    SAMPLE,
    Call,
    command,
    from_option,
    to_option,
    topic_ids_option,
    topics_option,
)
from kraftlake.cli.output.theme import Style
from kraftlake.cli.selection.events import Wanted

if TYPE_CHECKING:
    from kraftlake.image import MetadataImage

_PARTITION = re.compile(r".+-\d+", re.DOTALL)


@command(
    "events",
    section=LOOK,
    question="What happened in the cluster, in sentences?",
    secrets=True,
    examples=(
        Example(
            "what happened in a minute", f"kraftlake events {SAMPLE} --from 2026-11-21T07:46Z --to 2026-11-21T07:47Z"
        ),
        Example("everything that a partition went through", f"kraftlake events {SAMPLE} --partition t-22-3h4-2"),
        Example(
            "which topic had an id, and when",
            f"kraftlake events {SAMPLE} --topic-id nANz2uTcTHue83qLIJ1OVA --kind 'topic_*'",
        ),
        Example("which broker was fenced when", f"kraftlake events {SAMPLE} --kind 'broker_*fenced'"),
        Example("which partitions lost their leaders", f"kraftlake events {SAMPLE} --kind leader_lost --topic 't-2*'"),
        Example("for other programs, one JSON object a line", f"kraftlake events {SAMPLE} --broker 3 --json"),
    ),
)
@from_option
@to_option
@topics_option("Only of this topic")
@topic_ids_option("Only of the topic that has, or had, this id, without its configs")
@option("--partition", "partitions", multiple=True, metavar="NAME-N", help="Only of this partition. Repeatable.")
@option("--broker", type=BROKER, metavar="ID", help="Only of this broker itself.")
@option(
    "--kind",
    "kinds",
    type=EVENT_KIND,
    multiple=True,
    metavar="KIND",
    help="Only of this kind, such as leader_lost; * and ? match. Repeatable.",
)
def events(
    call: Call,
    source: str,
    *,
    first: int | datetime | None,
    last: int | datetime | None,
    topics: tuple[str, ...],
    topic_ids: tuple[str, ...],
    partitions: tuple[str, ...],
    broker: int | None,
    kinds: tuple[str, ...],
) -> None:
    """Show what happened in the cluster: leader changes, replicas out of sync, fenced brokers and more.

    An event is what a log batch, or a whole metadata transaction, changed of one thing: leaders, ISRs, reassignments,
    brokers, topics, configs, quotas, ACLs, features. `kraftlake spark events` writes the same as a table;
    docs/spark-jobs.md lists the kinds. Sensitive configs are shown as (redacted) unless --show-secrets is given.
    """
    for name in partitions:
        if not _PARTITION.fullmatch(name):
            raise click.UsageError(f"{name!r} is not a partition: give its topic and its number, as in foo-3.")
    from kraftlake.api.events import rows_of
    from kraftlake.cli.views.lines import EventsView
    from kraftlake.tables.events.log_events import form_of

    opened = call.open(source)
    told = opened.events(first, last, show_secrets=call.show_secrets, lenient=not call.strict)
    wanted = Wanted(topics=topics, topic_ids=topic_ids, partitions=partitions, broker=broker, kinds=kinds)
    view = EventsView(call.terminal)
    found = False
    for event in (form_of(row) for rows in told.tables() for row in rows_of(wanted.among(rows))):
        found = True
        if call.as_json:
            call.terminal.json({"clusterId": opened.cluster_id} | event)
        else:
            view.show(event)
    if not found and not call.as_json:
        call.terminal.line(("nothing of that kind happened", Style.QUIET))
    call.warn_skipped(told.skipped)
    if not found:
        _warn_unknown_names(call, opened.image(last, lenient=not call.strict), wanted)


def _warn_unknown_names(call: Call, image: MetadataImage, wanted: Wanted) -> None:
    """Warn where what nothing happened to is not there either: its name looks like a mistake."""
    from kraftlake.records.uuid import Uuid

    call.warn_unknown_names(image, topics=wanted.topics, broker=wanted.broker)
    where = f"at offset {image.offset}"
    for id_ in wanted.topic_ids:
        if image.topics.get_topic_by_id(Uuid.from_string(id_)) is None:
            call.terminal.warn(f"no topic has the id {id_} {where}")
    for name in wanted.partitions:
        topic = image.topics.get_topic(name.rpartition("-")[0])
        if topic is None or int(name.rpartition("-")[2]) not in topic.partitions:
            call.terminal.warn(f"there is no partition {name} {where}")
