"""`kraftlake events`: what happened in a cluster, in sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kraftlake.cli.command import Example, option
from kraftlake.cli.image_parts import any_matches, matches
from kraftlake.cli.options import SAMPLE, Call, command, from_option, to_option, topic_ids_option, topics_option
from kraftlake.cli.parameters import BROKER, EVENT_KIND
from kraftlake.cli.sections import LOOK

if TYPE_CHECKING:
    import pyarrow as pa

    from kraftlake.image import MetadataImage

_PARTITION = re.compile(r".+-\d+", re.DOTALL)
_ROWS_AT_ONCE = 1000


class Wanted(NamedTuple):
    """Which events are asked for; what is empty or None asks for all."""

    topics: tuple[str, ...] = ()
    topic_ids: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    broker: int | None = None
    kinds: tuple[str, ...] = ()

    def among(self, rows: pa.Table) -> pa.Table:
        """Those rows of `events/` that are asked for: of any of the topics or partitions, the broker and the kinds."""
        import pyarrow.compute as pc

        if self.topics or self.topic_ids or self.partitions:
            of_topics = pc.or_(
                _like(rows.column("topic"), self.topics), _among(rows.column("topic_id"), self.topic_ids)
            )
            rows = rows.filter(pc.or_(of_topics, self._of_partitions(rows)))
        if self.broker is not None:
            rows = rows.filter(pc.equal(rows.column("broker"), self.broker))
        return rows.filter(_like(rows.column("kind"), self.kinds)) if self.kinds else rows

    def _of_partitions(self, rows: pa.Table) -> pa.Array:
        """Where a row is of a partition itself, or of its topic as a whole: that it came, grew and went.

        Of its topic only where the topic has as many partitions.
        """
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        topics: dict[str, int] = {}
        for name in self.partitions:
            topic, _, number = name.rpartition("-")
            topics[topic] = min(int(number), topics.get(topic, int(number)))
        whole = pc.and_(pc.is_valid(rows.column("topic_id")), pc.is_null(rows.column("partition")))
        of_topics = pc.indices_nonzero(pc.and_(whole, _among(rows.column("topic"), list(topics))))
        told = rows.select(["topic", "before", "after"]).take(of_topics).to_pylist()
        has = np.zeros(len(rows), np.bool_)
        has[[at for at, row in zip(of_topics.to_pylist(), told, strict=True) if topics[row["topic"]] < _most(row)]] = (
            True
        )
        return pc.or_(_among(rows.column("subject"), self.partitions), pa.array(has))


def _most(row: dict[str, Any]) -> int:
    """The most partitions that a topic has in an event of it as a whole, whose sides begin with a count of them."""
    return max(int(side.split()[0]) for side in (row["before"], row["after"]) if side is not None)


def _like(column: pa.ChunkedArray, patterns: Sequence[str]) -> pa.Array:
    """Where a value matches any of some patterns; null matches none."""
    values = [value for value in column.unique().to_pylist() if value is not None]
    return _among(column, [value for value in values if matches(value, patterns)])


def _among(column: pa.ChunkedArray, values: Sequence[str]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(column, pa.array(values, pa.string()))


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
    from kraftlake.tables.events.log_events import form_of

    opened = call.open(source)
    told = opened.events(first, last, show_secrets=call.show_secrets, lenient=not call.strict)
    wanted = Wanted(topics=topics, topic_ids=topic_ids, partitions=partitions, broker=broker, kinds=kinds)
    asked_for = (form_of(row) for rows in told.tables() for row in _rows_of(wanted.among(rows)))
    shown = 0
    if call.as_json:
        for shown, event in enumerate(asked_for, 1):  # noqa: B007 - how many there were is looked at below
            call.terminal.json({"clusterId": opened.cluster_id} | event)
    else:
        from kraftlake.cli.views.events_view import EventsView

        view = EventsView(call.terminal)
        for shown, event in enumerate(asked_for, 1):  # noqa: B007
            view.show(event)
        view.finish()
    call.warn_skipped(told.skipped)
    if not shown:
        _warn_unknown_names(call, opened.image(last, lenient=not call.strict), wanted)


def _warn_unknown_names(call: Call, image: MetadataImage, wanted: Wanted) -> None:
    """Warn where what nothing happened to is not there either: its name looks like a mistake."""
    from kraftlake.records.uuid import Uuid

    where = f"at offset {image.offset}"
    if wanted.topics and not any_matches(image.topics, wanted.topics):
        call.terminal.warn(f"no topic matches {', '.join(wanted.topics)} {where}")
    for id_ in wanted.topic_ids:
        if image.topics.get_topic_by_id(Uuid.from_string(id_)) is None:
            call.terminal.warn(f"no topic has the id {id_} {where}")
    for name in wanted.partitions:
        topic = image.topics.get_topic(name.rpartition("-")[0])
        if topic is None or int(name.rpartition("-")[2]) not in topic.partitions:
            call.terminal.warn(f"there is no partition {name} {where}")
    if wanted.broker is not None:
        call.warn_unregistered(wanted.broker, image.cluster.brokers, where=where)


def _rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows as objects, few at a time."""
    for part in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield from part.to_pylist()
