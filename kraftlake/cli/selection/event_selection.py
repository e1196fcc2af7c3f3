"""The events that a command line selects: by topic, partition, broker and kind."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kraftlake.runtime.name_patterns import matches

if TYPE_CHECKING:
    import pyarrow as pa


class EventSelection(NamedTuple):
    """The events that a command line selects; an empty or None field selects all.

    With `hosted` the brokers also select the partitions that they host; the makers of events apply this: `of_brokers`.
    """

    topics: tuple[str, ...] = ()
    topic_ids: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    brokers: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    hosted: bool = False
    principals: tuple[str, ...] = ()

    @property
    def of_brokers(self) -> tuple[int, ...] | None:
        """The brokers for which events are made, None for all events."""
        return self.brokers if self.hosted else None

    def among(self, rows: pa.Table) -> pa.Table:
        """The selected rows of `events/`: of any of the topics or partitions, brokers, principals, and kinds."""
        import pyarrow.compute as pc

        if self.topics or self.topic_ids or self.partitions:
            of_topics = pc.or_(
                _like(rows.column("topic"), self.topics), _among(rows.column("topic_id"), self.topic_ids)
            )
            rows = rows.filter(pc.or_(of_topics, self._of_partitions(rows)))
        if self.brokers and not self.hosted:
            import pyarrow as pa

            rows = rows.filter(pc.is_in(rows.column("broker"), pa.array(self.brokers, pa.int32())))
        if self.principals:
            rows = rows.filter(self._about_principals(rows))
        return rows.filter(_among(rows.column("kind"), self.kinds)) if self.kinds else rows

    def _about_principals(self, rows: pa.Table) -> pa.Array:
        import pyarrow as pa

        from kraftlake.cli.selection.principals import is_subject

        pairs = zip(rows.column("kind").to_pylist(), rows.column("subject").to_pylist(), strict=True)
        return pa.array([is_subject(kind, subject, self.principals) for kind, subject in pairs], pa.bool_())

    def _of_partitions(self, rows: pa.Table) -> pa.Array:
        """A mask of the rows about a partition itself, or about its topic as a whole: created, grown, deleted.

        A row about the topic counts only where the topic has the partition.
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
        topic_rows = rows.select(["topic", "before", "after"]).take(of_topics).to_pylist()
        has = np.zeros(len(rows), np.bool_)
        has[
            [at for at, row in zip(of_topics.to_pylist(), topic_rows, strict=True) if topics[row["topic"]] < _most(row)]
        ] = True
        return pc.or_(_among(rows.column("subject"), self.partitions), pa.array(has))


def first_rows(tables: Iterable[pa.Table], limit: int) -> Iterator[pa.Table]:
    """Tables up to their row number `limit`; later tables are not read."""
    for table in tables:
        yield table.slice(0, limit)
        limit -= len(table)
        if limit <= 0:
            return


def last_rows(tables: Iterable[pa.Table], count: int) -> Iterator[pa.Table]:
    """The last rows of tables, `count` or fewer."""
    held: deque[pa.Table] = deque()
    rows = 0
    for table in tables:
        held.append(table)
        rows += len(table)
        while held and rows - len(held[0]) >= count:
            rows -= len(held.popleft())
    for number, table in enumerate(held):
        yield table if number else table.slice(max(0, rows - count))


def _most(row: dict[str, Any]) -> int:
    """The largest number of partitions in an event of a whole topic, whose before and after begin with a number."""
    return max(int(side.split()[0]) for side in (row["before"], row["after"]) if side is not None)


def _like(column: pa.ChunkedArray, patterns: Sequence[str]) -> pa.Array:
    """A mask of the values that match any of the patterns; null matches none."""
    values = [value for value in column.unique().to_pylist() if value is not None]
    return _among(column, [value for value in values if matches(value, patterns)])


def _among(column: pa.ChunkedArray, values: Sequence[str]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.is_in(column, pa.array(values, pa.string()))
