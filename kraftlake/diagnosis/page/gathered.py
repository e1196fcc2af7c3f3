"""The events and state changes in a range of a log, as columns. Imports numpy."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.diagnosis.attribution.attributed_events import with_clients
from kraftlake.diagnosis.attribution.attribution import Attribution
from kraftlake.diagnosis.page.broker_states import BrokerStates, BrokerTimes
from kraftlake.diagnosis.page.event_columns import EventColumns, events_of, joined
from kraftlake.diagnosis.page.row_states import states_after
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges, changes_of_image
from kraftlake.tables.events.delta_events import EventChunk

_PARTITION = (1 << 32) - 1
"""The bits of the partition's number in a row's key; the higher bits are the number of the topic."""


@attrs.frozen(kw_only=True, eq=False)
class Gathered:
    """The moments of a range, and the changes at each of them. A moment is the end of a metadata delta.

    By moment, in order: `offsets`, `times` (epoch ms, -1 for none) and `epochs`. The first has the state before the
    range, unless there was none.

    `topics` has the names and `topic_ids` the ids by number; a name that was used again has several. A row is a
    partition: by row `row_topics` and `row_partitions`, in the order of names and numbers.

    A change gives a row another state: `change_rows` (ascending), `change_moments` (ascending within a row) and
    `change_states`, numbers of `states`, which are those of `states_after`.

    By event, in order: `event_moments`; `event_kinds`, numbers of `kinds`; `event_rows` and `event_topics`, -1 for
    none; and `event_tails`, numbers of `tails`: its sentence, which lacks the partition's name at the beginning where
    there is a row. `brokers` are the states of the brokers. All arrays are int64.
    """

    offsets: Any
    times: Any
    epochs: Any
    topics: list[str]
    topic_ids: list[str]
    row_topics: Any
    row_partitions: Any
    change_rows: Any
    change_moments: Any
    change_states: Any
    states: pa.Array
    event_moments: Any
    event_kinds: Any
    event_rows: Any
    event_topics: Any
    event_tails: Any
    kinds: pa.Array
    tails: pa.Array
    brokers: BrokerTimes


class Gatherer:
    """Takes the deltas of a range in their order; `gathered` returns the result."""

    def __init__(self, begin: MetadataImage, attribution: Attribution | None = None) -> None:
        """Initialize with the image before the first delta; events get the clients that an `attribution` finds."""
        self._attribution = attribution
        self._moments: list[Any] = []
        self._count = 0
        self._topics: dict[str, int] = {}
        """The topics' numbers by id."""
        self._names: list[str] = []
        self._changes: list[Any] = []
        self._states: list[pa.DictionaryArray] = []
        self._events: list[EventColumns] = []
        self._brokers = BrokerStates()
        if not begin.is_empty():
            at = begin.provenance
            self._add_moments([at.offset], [at.timestamp], [at.epoch])
            self._add_changes(changes_of_image(begin.topics), 0)
            self._brokers.take(0, dict(begin.cluster.brokers))

    def take(self, chunk: EventChunk) -> None:
        """Add the deltas that follow the earlier ones."""
        first, ends = self._count, chunk.boundaries
        self._add_moments(ends.offsets, ends.times, ends.epochs)
        self._add_changes(chunk.partitions.by_delta(), first)
        for delta, brokers in chunk.brokers:
            self._brokers.take(first + delta, brokers)
        rows = chunk.rows()
        if len(rows):
            rows = rows if self._attribution is None else with_clients(rows, self._attribution)
            at = first + np.searchsorted(ends.offsets, rows.column("offset").to_numpy())
            self._events.append(events_of(rows, at, self._number_of))

    def end(self, offset: int, time: int) -> None:
        """Advance to the end of the range; nothing more has happened up to it."""
        last = self._moments[-1][:, -1] if self._count else np.full(3, -1)
        if offset > last[0]:
            self._add_moments([offset], [time], [last[2]])

    def gathered(self) -> Gathered:
        """The result. Moments without a change or event are left out, except the first and the last."""
        offsets, times, epochs = np.concatenate([np.empty((3, 0), np.int64), *self._moments], axis=1)
        keys, change_moments = np.concatenate([np.empty((2, 0), np.int64), *self._changes], axis=1)
        states = joined(self._states)
        events = EventColumns.joined(self._events)
        brokers = self._brokers.times()

        row_keys = np.unique(keys)
        ranks = _ranks(self._names)
        order = np.lexsort((row_keys & _PARTITION, ranks[row_keys >> 32]))
        rows = np.empty_like(order)
        rows[order] = np.arange(len(order))
        of_change = rows[np.searchsorted(row_keys, keys)]
        by_row = np.lexsort((change_moments, of_change))
        by_row = by_row[_differ(of_change[by_row], states.indices.to_numpy()[by_row])]

        kept = np.zeros(self._count, np.bool_)
        kept[:1] = kept[-1:] = True
        for some in (change_moments[by_row], events.moments, brokers.moments):
            kept[some] = True
        number = np.cumsum(kept) - 1
        return Gathered(
            offsets=offsets[kept],
            times=times[kept],
            epochs=epochs[kept],
            topics=self._names,
            topic_ids=[*self._topics],
            row_topics=row_keys[order] >> 32,
            row_partitions=row_keys[order] & _PARTITION,
            change_rows=of_change[by_row],
            change_moments=number[change_moments[by_row]],
            change_states=states.indices.to_numpy()[by_row],
            states=states.dictionary,
            event_moments=number[events.moments],
            event_kinds=events.kinds.indices.to_numpy(),
            event_rows=_found(row_keys, rows, events.topics, events.partitions),
            event_topics=self._topics_of(events, keys >> 32, change_moments),
            event_tails=events.tails.indices.to_numpy(),
            kinds=events.kinds.dictionary,
            tails=events.tails.dictionary,
            brokers=attrs.evolve(brokers, moments=number[brokers.moments]),
        )

    def _add_moments(self, offsets: Any, times: Any, epochs: Any) -> None:
        if len(offsets):  # the last moment is that of the last array
            self._moments.append(np.array([offsets, times, epochs], np.int64))
            self._count += len(offsets)

    def _add_changes(self, changes: PartitionChanges, first: int) -> None:
        """Add the changes of deltas; `first` is the number of the first delta's moment."""
        changes = changes.take(np.flatnonzero((changes.flags & (HAD | HAS) != 0) & changes.altered))
        used, which = np.unique(changes.topics, return_inverse=True)
        names, ids = (strings.take(pa.array(used)).to_pylist() for strings in changes.names[:2])
        numbers = np.array([self._number_of(id_, name) for id_, name in zip(ids, names, strict=True)], np.int64)
        keys = numbers[which.reshape(-1)] << 32 | changes.partitions
        self._changes.append(np.array([keys, first + changes.deltas]))
        self._states.append(states_after(changes))

    def _topics_of(self, events: EventColumns, changed: Any, moments: Any) -> Any:
        """The topics of events, by name for those without an id: the newest topic of that name at the event's time.

        `changed` are the topics of changes at `moments`.
        """
        begins = np.full(len(self._names), self._count)
        np.minimum.at(begins, changed, moments)
        known: dict[str, list[int]] = {}
        for topic in np.argsort(begins, kind="stable").tolist():
            known.setdefault(self._names[topic], []).append(topic)
        topics, names = events.topics.copy(), events.names.dictionary.to_pylist()
        some = np.flatnonzero(events.names.is_valid())
        for event, number in zip(some.tolist(), events.names.indices.take(pa.array(some)).to_pylist(), strict=True):
            of_name = known.get(names[number], [])
            newest = bisect_right(of_name, events.moments[event], key=begins.__getitem__) - 1
            if of_name:
                topics[event] = of_name[max(newest, 0)]
        return topics

    def _number_of(self, topic_id: str, name: str) -> int:
        number = self._topics.setdefault(topic_id, len(self._topics))
        if number == len(self._names):
            self._names.append(name)
        return number


def _differ(rows: Any, states: Any) -> Any:
    """A mask of the changes that give their row another state; the others are of fields that a page omits."""
    return (np.diff(rows, prepend=-1) != 0) | (np.diff(states, prepend=-1) != 0)


def _ranks(names: list[str]) -> Any:
    """The rank (int64) of each name in their order; equal names keep their order."""
    ranks = np.empty(len(names), np.int64)
    ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    return ranks


def _found(row_keys: Any, rows: Any, topics: Any, partitions: Any) -> Any:
    """The rows of partitions, -1 where there is no partition (-1), or no such row."""
    keys = topics << 32 | partitions
    places = np.minimum(np.searchsorted(row_keys, keys), max(len(row_keys) - 1, 0))
    found = np.full(len(keys), -1)
    if len(row_keys):
        known = np.flatnonzero((partitions >= 0) & (topics >= 0) & (row_keys[places] == keys))
        found[known] = rows[places[known]]
    return found
