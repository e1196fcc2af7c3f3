"""Events of topics and partitions that compiled code has replayed. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.kernels.columns.broker_changes import HAD, HAS
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.tables.changes.delta_boundaries import DeltaBoundaries
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.changes.partition_places import Moved, PartitionPlaces
from kraftlake.tables.events.event_rows import SingleEvents, event_rows
from kraftlake.tables.events.partition_pairs import PartitionPairs
from kraftlake.tables.events.table import Event
from kraftlake.tables.events.topic_events import partitions_added, partitions_in_words, topic_created, topic_deleted
from kraftlake.tables.row_lists import RowLists


class BulkEvents(NamedTuple):
    """The events of records of topics; `done` is the number of the first record that was not replayed.

    `rows` makes, on any thread, the rows of these events and of others, which are given with the numbers of their
    deltas and come last in each delta, and the numbers of the deltas (int64) of all rows. `removed` has the numbers of
    the records that removed topics, with the topics' names.
    """

    done: int
    rows: Callable[[Sequence[tuple[int, Event]]], tuple[pa.Table, Any]]
    removed: list[tuple[int, str]]


def bulk_events(
    places: PartitionPlaces, records: EffectiveRecords, deltas: Any, boundaries: DeltaBoundaries
) -> BulkEvents:
    """Replay records of topics as `PartitionPlaces.replay` does; the events of their deltas."""
    moved = places.replay(records, deltas)
    places.strings.learn()
    topics = _TopicEvents(places, moved, records, deltas)
    change, names = places.change, places.strings.names
    some = np.flatnonzero((moved.flags & (HAD | HAS)) == (HAD | HAS))
    pairs = PartitionPairs(
        before=moved.before,
        after=moved.after,
        base_heap=change.base.heap,
        heap=change.state.heap,
        topics=topics.topics,
        partitions=topics.partitions.astype(np.int32),
        names=names,
        ids=places.strings.ids,
        deltas=moved.deltas,
    )
    removed = [(record, names[topic].as_py()) for record, topic in moved.removals.tolist()]
    return BulkEvents(moved.done, partial(_rows, pairs, some, [*topics.events()], boundaries), removed)


def _rows(
    pairs: PartitionPairs,
    some: Any,
    of_topics: Sequence[_TopicEvent],
    boundaries: DeltaBoundaries,
    others: Sequence[tuple[int, Event]],
) -> tuple[pa.Table, Any]:
    """The events of some pairs (int64) and others, and the deltas of theirs.

    Those of a delta by topic (topics that are gone first) and partition, then the others.
    """
    known = np.array([(event.delta, event.topic, not event.gone) for event in of_topics], np.int64).reshape(-1, 3)
    topics = pairs.topics[some]
    names, count = _name_ranks(pairs.names, np.concatenate((topics, known[:, 1])))
    partitions = _dense(pairs.partitions[some])
    most = int(partitions.max(initial=-1)) + 2

    def ranks(deltas: Any, stays: Any, names: Any, partitions: Any) -> Any:
        return ((deltas * 2 + stays) * (count + 1) + names) * most + partitions

    of_pairs = ranks(pairs.deltas[some], 1, names[topics], partitions + 1)
    order = np.argsort(of_pairs)
    deltas = np.concatenate((known[:, 0], np.array([delta for delta, _ in others], np.int64)))
    of_singles = np.concatenate(
        (
            ranks(known[:, 0], known[:, 2], names[known[:, 1]], 0),
            ranks(deltas[len(known) :], 1, count, most - 1),
        )
    )
    single_order = np.argsort(of_singles, kind="stable")
    events = [event.event for event in of_topics] + [event for _, event in others]
    singles = SingleEvents([events[at] for at in single_order.tolist()], deltas[single_order], of_singles[single_order])
    return event_rows(pairs.take(some[order]), of_pairs[order], singles, boundaries)


def _name_ranks(names: pa.Array, topics: Any) -> tuple[Any, int]:
    """The ranks of the names of some topics, by number of the topic (int64), and their count."""
    used = np.zeros(len(names), np.bool_)
    used[topics] = True
    known = np.flatnonzero(used)
    ranks = np.zeros(len(names), np.int64)
    ranks[known] = pc.rank(names.take(pa.array(known)), tiebreaker="dense").to_numpy()
    return ranks, len(known)


def _dense(partitions: Any) -> Any:
    """Numbers (int64) in the order of the partitions' ids, below 2^20 or the number of partitions."""
    if len(partitions) and int(partitions.max()) >= 1 << 20:
        return np.unique(partitions, return_inverse=True)[1].reshape(-1)
    return partitions.astype(np.int64)


class _TopicEvent(NamedTuple):
    delta: int
    topic: int
    gone: bool
    event: Event


class _TopicEvents:
    """Topics that were created, grew or were deleted. `topics` and `partitions` are the numbers of changed ones."""

    def __init__(self, places: PartitionPlaces, moved: Moved, records: EffectiveRecords, deltas: Any) -> None:
        self._places = places
        self._moved = moved
        self.topics = places.change.topics_at(moved.places).astype(np.int64)
        self.partitions = places.change.partitions_at(moved.places)
        created = deltas[: moved.done][records.kinds[: moved.done] == TopicRecord.API_KEY]
        self._created = dict(enumerate(created.tolist(), start=moved.first_topic))
        """The delta that created each new topic."""
        removals = moved.removals
        self._gone = dict(zip(removals[:, 1].tolist(), deltas[removals[:, 0]].tolist(), strict=True))
        """The delta that removed each removed topic."""

    def events(self) -> Iterator[_TopicEvent]:
        """The events of topics, in no order."""
        moved = self._moved
        come = self._counted((moved.flags & (HAD | HAS)) == HAS, moved.after)
        gone = self._counted((moved.flags & (HAD | HAS)) == HAD, moved.before)
        for topic, delta in self._created.items():
            counted = come.pop((delta, topic), (0, 0, 0))
            if self._gone.get(topic) != delta:
                yield _TopicEvent(
                    delta, topic, False, topic_created(*self._named(topic), partitions_in_words(*counted))
                )
        for topic, delta in self._gone.items():
            if self._created.get(topic) != delta:
                words = partitions_in_words(*gone.get((delta, topic), (0, 0, 0)))
                yield _TopicEvent(delta, topic, True, topic_deleted(*self._named(topic), words))
        if not come:
            return
        change = self._places.change
        grown = np.zeros(change.topic_total, np.bool_)
        grown[[topic for _, topic in come]] = True
        places = change.places_of(grown)
        sizes = np.bincount(change.topics_at(places[self._places.there[places] != 0]), minlength=change.topic_total)
        for (_, topic), (count, _, _) in gone.items():
            sizes[topic] += count
        for (delta, topic), (added, _, _) in sorted(come.items(), reverse=True):
            sizes[topic] -= added
            yield _TopicEvent(delta, topic, False, partitions_added(*self._named(topic), int(sizes[topic]), added))

    def _named(self, topic: int) -> tuple[str, str]:
        strings = self._places.strings
        return strings.names[topic].as_py(), strings.ids[topic].as_py()

    def _counted(self, which: Any, rows: Any) -> dict[tuple[int, int], tuple[int, int, int]]:
        """By delta and topic: the number of partitions that `which` names, and their least and most replicas."""
        some = np.flatnonzero(which)
        if not len(some):
            return {}
        change, deltas, topics = self._places.change, self._moved.deltas[some], self.topics[some]
        lengths = RowLists(np.ascontiguousarray(rows[some]), change.base.heap, change.state.heap).lengths("replicas")
        order = np.lexsort((topics, deltas))
        deltas, topics, lengths = deltas[order], topics[order], lengths[order]
        begins = np.flatnonzero((np.diff(deltas, prepend=-1) != 0) | (np.diff(topics, prepend=-1) != 0))
        keys = zip(deltas[begins].tolist(), topics[begins].tolist(), strict=True)
        counts = np.diff(np.append(begins, len(some))).tolist()
        least, most = (ufunc.reduceat(lengths, begins).tolist() for ufunc in (np.minimum, np.maximum))
        return dict(zip(keys, zip(counts, least, most, strict=True), strict=True))
