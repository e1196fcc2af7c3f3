"""Events of topics that are kept by places, as columns: nothing is done a record in Python. Imports numpy and numba."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.kernels.broker_changes import HAD, HAS
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.spark_jobs.delta_heads import DeltaHeads
from kraftlake.spark_jobs.event_table import merged, table_of_events, table_of_states
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords
from kraftlake.spark_jobs.partition_event_columns import PartitionChanges, state_events
from kraftlake.spark_jobs.partition_events import (
    Event,
    partition_words,
    partitions_added,
    topic_created,
    topic_deleted,
)
from kraftlake.spark_jobs.partition_places import Moved, PartitionPlaces
from kraftlake.spark_jobs.row_lists import RowLists


class BulkEvents(NamedTuple):
    """What records of topics were: `done` is the first that was not replayed.

    `rows` makes the events of topics and partitions, and the numbers of their deltas (int64), on whatever thread;
    `removed` has the records that have removed topics, with the topics' names.
    """

    done: int
    rows: Callable[[], tuple[pa.Table, Any]]
    removed: list[tuple[int, str]]


def bulk_events(places: PartitionPlaces, records: EffectiveRecords, deltas: Any, heads: DeltaHeads) -> BulkEvents:
    """Replay records of topics as `PartitionPlaces.replay` does; the events of their deltas."""
    moved = places.replay(records, deltas)
    places.strings.learn()
    topics = _TopicEvents(places, moved, records, deltas)
    change, names = places.change, places.strings.names
    there = PartitionChanges(before=moved.before, after=moved.after, base_heap=change.base.heap, heap=change.state.heap)
    told = _Told(moved, there, topics.topics, topics.partitions, [*topics.events()], names, places.strings.ids)
    removed = [(record, names[topic].as_py()) for record, topic in moved.removals.tolist()]
    return BulkEvents(moved.done, partial(_table, told, heads), removed)


class _Told(NamedTuple):
    """What events are made of. Nothing in it changes while the places move on."""

    moved: Moved
    there: PartitionChanges
    topics: Any
    partitions: Any
    events: list[_TopicEvent]
    names: pa.Array
    ids: pa.Array


def _table(told: _Told, heads: DeltaHeads) -> tuple[pa.Table, Any]:
    """The events by delta, topic (those that are gone first) and partition; and the deltas of theirs."""
    moved, there, events = told.moved, told.there, told.events
    some = np.flatnonzero(((moved.flags & (HAD | HAS)) == (HAD | HAS)) & there.tell())
    partitions, topics = told.partitions[some], told.topics[some]
    of_events = np.array([(event.delta, event.topic, not event.gone) for event in events], np.int64).reshape(-1, 3)
    ranks, count = _ranks(told.names, np.concatenate((topics, of_events[:, 1])))
    widest = _dense(partitions)
    keys = _Keys(count + 1, int(widest.max()) + 2 if len(widest) else 1)
    states = keys.of(moved.deltas[some], 1, ranks[topics], widest + 1)
    order = np.argsort(states, kind="stable")
    some, states = some[order], states[order]
    found = state_events(there.where(some))
    rows = some[found.changes]
    topic, names, ids = _topics(told, rows)
    table = table_of_states(
        found,
        heads.columns(moved.deltas[rows]),
        pa.DictionaryArray.from_arrays(topic, names),
        pa.DictionaryArray.from_arrays(topic, ids),
        pa.array(told.partitions[rows].astype(np.int32, copy=False)),
    )
    singles = keys.of(of_events[:, 0], of_events[:, 2], ranks[of_events[:, 1]], 0)
    sorted_ = np.argsort(singles, kind="stable")
    one_by_one = table_of_events([events[at].event for at in sorted_.tolist()], of_events[sorted_, 0], heads)
    all_keys = np.sort(np.concatenate((states[found.changes], singles[sorted_])), kind="stable")
    return merged(table, states[found.changes], one_by_one, singles[sorted_]), keys.deltas(all_keys)


def _topics(told: _Told, rows: Any) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The topics of some partitions by number, and the names and ids that these numbers are for."""
    topics = told.topics[rows]
    used = np.zeros(len(told.names), np.bool_)
    used[topics] = True
    known = pa.array(np.flatnonzero(used))
    numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
    return pa.array(numbers[topics]), told.names.take(known), told.ids.take(known)


def _ranks(names: pa.Array, topics: Any) -> tuple[Any, int]:
    """By number of a topic where its name stands among those of some topics, and how many these are at most."""
    used = np.zeros(len(names), np.bool_)
    used[topics] = True
    known = np.flatnonzero(used)
    ranks = np.zeros(len(names), np.int64)
    ranks[known] = pc.rank(names.take(pa.array(known)), tiebreaker="dense").to_numpy()
    return ranks, len(known)


class _Keys(NamedTuple):
    """How deltas, whether a topic stays, topics by rank and partitions become one number, in their order."""

    topics: int
    partitions: int

    def of(self, deltas: Any, stays: Any, topics: Any, partitions: Any) -> Any:
        return ((deltas * 2 + stays) * self.topics + topics) * self.partitions + partitions

    def deltas(self, keys: Any) -> Any:
        """The deltas that keys are of."""
        return keys // (2 * self.topics * self.partitions)


def _dense(partitions: Any) -> Any:
    """Numbers that sort as the partitions' ids do, and are not larger than there are partitions or some."""
    if len(partitions) and int(partitions.max()) >= 1 << 20:
        return np.unique(partitions, return_inverse=True)[1].reshape(-1)
    return partitions.astype(np.int64)


class _TopicEvent(NamedTuple):
    delta: int
    topic: int
    gone: bool
    event: Event


class _TopicEvents:
    """Topics that came, grew and went. `topics` and `partitions` are the numbers of those that moved."""

    def __init__(self, places: PartitionPlaces, moved: Moved, records: EffectiveRecords, deltas: Any) -> None:
        self._places = places
        self._moved = moved
        self.topics = places.change.topics_at(moved.places).astype(np.int64)
        self.partitions = places.change.partitions_at(moved.places)
        created = deltas[: moved.done][records.kinds[: moved.done] == TopicRecord.API_KEY]
        self._created = dict(enumerate(created.tolist(), start=moved.first_topic))
        """In which delta each new topic was created."""
        removals = moved.removals
        self._gone = dict(zip(removals[:, 1].tolist(), deltas[removals[:, 0]].tolist(), strict=True))
        """In which delta each topic was removed that was."""

    def events(self) -> Iterator[_TopicEvent]:
        """What is to be told of topics, in no order."""
        moved = self._moved
        come = self._counted((moved.flags & (HAD | HAS)) == HAS, moved.after)
        gone = self._counted((moved.flags & (HAD | HAS)) == HAD, moved.before)
        for topic, delta in self._created.items():
            counted = come.pop((delta, topic), (0, 0, 0))
            if self._gone.get(topic) != delta:
                yield _TopicEvent(delta, topic, False, topic_created(*self._named(topic), partition_words(*counted)))
        for topic, delta in self._gone.items():
            if self._created.get(topic) != delta:
                words = partition_words(*gone.get((delta, topic), (0, 0, 0)))
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
        """By delta and topic how many of the partitions there are, and their least and most replicas."""
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
