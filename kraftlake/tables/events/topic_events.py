"""The events of topics as a whole: those in changes of partitions, and their sentences.

Imports numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges
from kraftlake.tables.events.events_table import Event


class TopicEvent(NamedTuple):
    """An event of the topic with a number in a delta; `gone`: the delta deleted the topic."""

    delta: int
    topic: int
    gone: bool
    event: Event


class _Counted(NamedTuple):
    """A number of partitions, and their least and most replicas."""

    total: int = 0
    least: int = 0
    most: int = 0

    def __str__(self) -> str:
        """`12 partitions, replication factor 3`."""
        words = f"{self.total} partition{'' if self.total == 1 else 's'}"
        factor = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        return f"{words}, replication factor {factor}" if self.total else words


def topic_events(changes: PartitionChanges) -> Iterator[TopicEvent]:
    """The topics that deltas created, extended or deleted, in no order; `changes` has one change a partition and delta.

    A topic that was created and deleted in the same delta has no event.
    """
    added, lost = _counted(changes, HAS, changes.after), _counted(changes, HAD, changes.before)
    created = {(delta, topic) for delta, topic in changes.created.tolist()}
    removed = {(delta, topic) for delta, topic, _ in changes.removed.tolist()}

    def event(
        delta: int,
        topic: int,
        kind: str,
        words: str,
        *,
        field: str | None = None,
        before: str | None = None,
        after: str | None = None,
    ) -> TopicEvent:
        name, topic_id = changes.names.topics[topic].as_py(), changes.names.ids[topic].as_py()
        columns = (kind, f"topic {name}", name, topic_id, None, None, field, before, after, f"topic {name} {words}")
        return TopicEvent(delta, topic, kind == "topic_deleted", columns)

    for key in created - removed:
        partitions = str(added.get(key, _Counted()))
        yield event(*key, "topic_created", f"is created with {partitions}", after=partitions)
    for key in removed - created:
        partitions = str(lost.get(key, _Counted()))
        yield event(*key, "topic_deleted", f"with {partitions} is gone", before=partitions)
    totals: dict[int, int] = {}
    for key in sorted({*added, *lost}, reverse=True):
        topic, more = key[1], added.get(key, _Counted()).total
        after = totals.get(topic, int(changes.sizes[topic]))
        before = totals[topic] = after - more + lost.get(key, _Counted()).total
        if more and key not in created:
            words = f"has {before + more} partitions, {more} more than before"
            yield event(
                *key, "partitions_added", words, field="partitions", before=f"{before}", after=f"{before + more}"
            )


def _counted(changes: PartitionChanges, flag: int, rows: Any) -> dict[tuple[int, int], _Counted]:
    """The partitions that exist at one end of the delta alone, the end with that flag, by delta and topic."""
    some = np.flatnonzero(changes.flags & (HAD | HAS) == flag)
    if not len(some):
        return {}
    lengths = changes.lists(np.ascontiguousarray(rows[some])).lengths("replicas")
    order = np.lexsort((changes.topics[some], changes.deltas[some]))
    deltas, topics, lengths = changes.deltas[some][order], changes.topics[some][order], lengths[order]
    begins = np.flatnonzero((np.diff(deltas, prepend=-1) != 0) | (np.diff(topics, prepend=-1) != 0))
    keys = zip(deltas[begins].tolist(), topics[begins].tolist(), strict=True)
    counts = np.diff(np.append(begins, len(some))).tolist()
    least, most = (ufunc.reduceat(lengths, begins).tolist() for ufunc in (np.minimum, np.maximum))
    return dict(zip(keys, map(_Counted, counts, least, most), strict=True))
