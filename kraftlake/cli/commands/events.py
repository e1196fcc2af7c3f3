"""`kraftlake events`: what happened in a cluster, in sentences."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kraftlake.cli.command import Example, Option
from kraftlake.cli.options import SAMPLE, Call, command, from_option, to_option, topics_option
from kraftlake.cli.parameters import BROKER, EVENT_KIND
from kraftlake.cli.sections import LOOK

if TYPE_CHECKING:
    from kraftlake.image import MetadataImage
    from kraftlake.replay.changes import LogChanges

_PARTITION = re.compile(r".+-\d+", re.DOTALL)
_CHANGES_AT_ONCE = 200


class Wanted(NamedTuple):
    """Which events are asked for; what is empty or None asks for all."""

    topics: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    broker: int | None = None
    kinds: tuple[str, ...] = ()

    def has(self, event: dict[str, Any]) -> bool:
        """Whether an event is asked for: of any of the topics or partitions, and of the broker, and of a kind."""
        if self.topics or self.partitions:
            of_topic = any(fnmatch.fnmatchcase(event["topic"] or "", pattern) for pattern in self.topics)
            if not of_topic and not self._of_partition(event):
                return False
        if self.broker is not None and event["broker"] != self.broker:
            return False
        return not self.kinds or any(fnmatch.fnmatchcase(event["kind"], pattern) for pattern in self.kinds)

    def _of_partition(self, event: dict[str, Any]) -> bool:
        """A partition's own events, and those of its topic as a whole: that it came, grew and went."""
        if event["subject"] in self.partitions:
            return True
        whole = event["topicId"] is not None and event["partition"] is None
        return whole and any(event["topic"] == name.rpartition("-")[0] for name in self.partitions)


@command(
    "events",
    section=LOOK,
    question="What happened in the cluster, told in sentences?",
    examples=(
        Example(
            "what happened in a minute", f"kraftlake events {SAMPLE} --from 2026-11-21T07:46Z --to 2026-11-21T07:47Z"
        ),
        Example("everything that a partition went through", f"kraftlake events {SAMPLE} --partition t-22-3h4-2"),
        Example("which broker was fenced when", f"kraftlake events {SAMPLE} --kind 'broker_*fenced'"),
        Example("which partitions lost their leaders", f"kraftlake events {SAMPLE} --kind leader_lost --topic 't-2*'"),
        Example("for other programs, one JSON object a line", f"kraftlake events {SAMPLE} --broker 3 --json"),
    ),
)
@from_option
@to_option
@topics_option("Only of this topic")
@click.option(
    "--partition", "partitions", cls=Option, multiple=True, metavar="NAME-N", help="Only of this partition. Repeatable."
)
@click.option("--broker", cls=Option, type=BROKER, metavar="ID", help="Only of this broker itself.")
@click.option(
    "--kind",
    "kinds",
    cls=Option,
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
    partitions: tuple[str, ...],
    broker: int | None,
    kinds: tuple[str, ...],
) -> None:
    """Tell what happened in the cluster: who led what, which replicas fell behind, which brokers were fenced.

    An event is what a log batch, or a whole metadata transaction, changed of one thing: leaders, ISRs, reassignments,
    brokers, topics, configs, quotas, ACLs, features. Secrets are never shown. `kraftlake spark events` writes the same
    as a table; docs/spark-jobs.md lists the kinds.
    """
    for name in partitions:
        if not _PARTITION.fullmatch(name):
            raise click.UsageError(f"{name!r} is not a partition: give its topic and its number, as in foo-3.")
    opened = call.open(source)
    begin, end = call.offsets(opened, first, last)
    changes = opened.changes(begin, end, lenient=not call.strict)
    wanted = Wanted(topics=topics, partitions=partitions, broker=broker, kinds=kinds)
    asked_for = (event for event in _events(changes) if wanted.has(event))
    shown = 0
    if call.as_json:
        for shown, event in enumerate(asked_for, 1):  # noqa: B007 - how many there were is looked at below
            call.terminal.json(event)
    else:
        from kraftlake.cli.views.events_view import EventsView

        view = EventsView(call.terminal)
        for shown, event in enumerate(asked_for, 1):  # noqa: B007
            view.show(event)
        view.finish()
    call.tell_skipped(changes.skipped)
    if not shown:
        _tell_strangers(call, opened.image(end, lenient=not call.strict), wanted)


def _tell_strangers(call: Call, image: MetadataImage, wanted: Wanted) -> None:
    """Warn where what nothing happened to is not there either: its name looks like a mistake."""
    where = f"at offset {image.offset}"
    topics = image.topics.topics_by_name()
    if wanted.topics and not any(fnmatch.fnmatchcase(name, pattern) for name in topics for pattern in wanted.topics):
        call.terminal.warn(f"no topic matches {', '.join(wanted.topics)} {where}")
    for name in wanted.partitions:
        topic, _, number = name.rpartition("-")
        if topic not in topics or int(number) not in topics[topic].partitions:
            call.terminal.warn(f"there is no partition {name} {where}")
    if wanted.broker is not None:
        call.tell_unregistered(wanted.broker, image.cluster.brokers, where=where)


def _events(changes: LogChanges) -> Iterator[dict[str, Any]]:
    """The events of the changes, in their order."""
    from kraftlake.runtime.errors import KraftlakeError
    from kraftlake.spark_jobs.events import EventsWriter

    writer = EventsWriter()
    try:
        for count, change in enumerate(changes, 1):
            writer.publish(change)
            if count % _CHANGES_AT_ONCE == 0:
                yield from map(_form, writer.drain().to_pylist())
    except KraftlakeError:  # what happened before the record that can't be replayed is told first
        yield from map(_form, writer.drain().to_pylist())
        raise
    yield from map(_form, writer.drain().to_pylist())


def _form(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table events/ as JSON: names in camel case, the time in milliseconds since 1970."""
    time = row.pop("timestamp")
    form = {"offset": row.pop("offset"), "epoch": row.pop("epoch")}
    form["timestamp"] = -1 if time is None else round(time.timestamp() * 1000)
    form |= {"kind": row.pop("kind"), "subject": row.pop("subject"), "topic": row.pop("topic")}
    return form | {"topicId": row.pop("topic_id")} | row
