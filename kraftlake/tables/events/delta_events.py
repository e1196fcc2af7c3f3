"""The events of metadata deltas: elections, then topics and partitions, then everything else. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraftlake.image.broker_registration import BrokerRegistration
from kraftlake.replay.log.delta_chunk import DeltaBoundaries, DeltaChunk, LogBegin
from kraftlake.replay.log.partition_changes import HAD, HAS, PartitionChanges
from kraftlake.tables.events.event_rows import SingleEvents, event_rows
from kraftlake.tables.events.events_table import EVENTS, Event
from kraftlake.tables.events.non_topic_events import election_event, non_topic_events, quorum_events
from kraftlake.tables.events.topic_events import topic_events

_ELECTION, _DELETED_TOPIC, _TOPIC, _OTHER = range(4)
"""The order of the events of a delta; those of topics are by name, and partitions come after their topic."""

_BROKER: Final = EVENTS.schema.get_field_index("broker") - EVENTS.schema.get_field_index("kind")
"""The index of the broker in an Event."""

_MANY_PARTITIONS: Final = 1 << 20

NumberedEvent = tuple[int, Event]
"""An event with the number of its delta."""


NumberedBrokers = tuple[int, Mapping[int, BrokerRegistration | None]]
"""The registrations of the brokers that a delta changed, by id, with the number of the delta; None is for an
unregistered one.
"""


@attrs.frozen(kw_only=True, eq=False)
class EventChunk:
    """Metadata deltas that follow each other, and the input of their events. Never modified.

    Delta i ends at `boundaries.offsets[i]`; `partitions` are the changes of topics and partitions, `elections` the new
    leaders and the voters of the quorum, and `others` the events of everything else. `brokers` has the registrations
    that were changed. `of_brokers` as for `delta_rows`.
    """

    boundaries: DeltaBoundaries
    partitions: PartitionChanges
    elections: Sequence[NumberedEvent]
    others: Sequence[NumberedEvent]
    brokers: Sequence[NumberedBrokers]
    of_brokers: frozenset[int] | None = None

    def rows(self) -> pa.Table:
        """The rows of `events/` (ENCODED_EVENTS); on any thread."""
        return delta_rows(self.partitions, self.boundaries, self.elections, self.others, of_brokers=self.of_brokers)


class DeltaEvents:
    """Makes the events of metadata deltas, which follow each other."""

    def __init__(
        self, begin: LogBegin, *, show_secrets: bool = False, of_brokers: frozenset[int] | None = None
    ) -> None:
        """Initialize with the image before the first delta. Sensitive configs are `(redacted)` unless `show_secrets`.

        `of_brokers` as for `delta_rows`.
        """
        self._of_brokers = of_brokers
        self._epoch = begin.epoch
        self._quorum, self._newest_quorum = begin.quorum, begin.newest_quorum
        """The state of the quorum as of the last delta, and the newest one: a metadata transaction may be open."""
        self._show_secrets = show_secrets
        self._of_topics = not begin.in_shards

    def take(self, chunk: DeltaChunk) -> EventChunk:
        """The input of the events of deltas."""
        brokers: list[NumberedBrokers] = []
        return EventChunk(
            boundaries=chunk.boundaries,
            partitions=chunk.partitions if self._of_topics else chunk.partitions.none(),
            elections=[*self._elections(chunk.boundaries), *self._quorum_events(chunk)],
            others=[*self._other_events(chunk, brokers)],
            brokers=brokers,
            of_brokers=self._of_brokers,
        )

    def _elections(self, boundaries: DeltaBoundaries) -> Iterator[NumberedEvent]:
        """The deltas that begin an epoch under a known leader; a batch of no-op records only has no event."""
        begins = (np.diff(boundaries.epochs, prepend=self._epoch) != 0) & (boundaries.leaders >= 0) & ~boundaries.noop
        if len(boundaries):
            self._epoch = int(boundaries.epochs[-1])
        for delta in np.flatnonzero(begins).tolist():
            yield delta, election_event(int(boundaries.leaders[delta]), int(boundaries.epochs[delta]))

    def _quorum_events(self, chunk: DeltaChunk) -> Iterator[NumberedEvent]:
        """The events of the voters and of kraft.version, by the delta with which a change of the quorum ends."""
        ends = chunk.boundaries.offsets
        known = {0: self._newest_quorum} if len(ends) else {}
        for change in chunk.quorum:
            self._newest_quorum = change.state
            known[int(np.searchsorted(ends, change.offset))] = change.state
        known.pop(len(ends), None)
        for number, state in known.items():
            for event in quorum_events(self._quorum, state):
                yield number, event
            self._quorum = state

    def _other_events(self, chunk: DeltaChunk, brokers: list[NumberedBrokers]) -> Iterator[NumberedEvent]:
        """The events of all but topics and partitions; the brokers that were changed are added to `brokers`."""
        for number, group in groupby(chunk.others, key=attrgetter("delta")):
            changes = [*group]
            deltas = [change.change for change in changes]
            changed = [delta.cluster_delta.changed_brokers for delta in deltas if delta.cluster_delta is not None]
            if changed:
                brokers.append((number, {id_: broker for of in changed for id_, broker in of.items()}))
            for event in non_topic_events(deltas, changes[-1].image, show_secrets=self._show_secrets):
                yield number, event


def delta_rows(
    changes: PartitionChanges,
    boundaries: DeltaBoundaries,
    elections: Sequence[NumberedEvent],
    others: Sequence[NumberedEvent],
    *,
    of_brokers: frozenset[int] | None = None,
) -> pa.Table:
    """The rows (ENCODED_EVENTS) of the events of deltas; `elections` and `others` are by delta.

    `of_brokers` leaves only the events of these brokers, of the partitions that they host before or after the delta,
    and of the topics that were created, extended or deleted with such partitions.
    """
    changes = changes.by_delta()
    changed = np.flatnonzero((changes.flags & (HAD | HAS) == HAD | HAS) & changes.altered)
    of_topics = [*topic_events(changes)]
    if of_brokers is not None:
        hosted = _hosted(changes, of_brokers)
        come_or_gone = np.flatnonzero(hosted & (changes.flags & (HAD | HAS) != HAD | HAS))
        in_deltas = set(zip(changes.deltas[come_or_gone].tolist(), changes.topics[come_or_gone].tolist(), strict=True))
        changed = changed[hosted[changed]]
        of_topics = [event for event in of_topics if (event.delta, event.topic) in in_deltas]
        elections = []
        others = [(number, event) for number, event in others if event[_BROKER] in of_brokers]
    topics = np.concatenate((changes.topics[changed], np.array([event.topic for event in of_topics], np.int64)))
    names, count = _name_ranks(changes.names.topics, topics)
    partitions = _dense(changes.partitions[changed])
    sizes = (_OTHER + 1, count + 1, int(partitions.max(initial=-1)) + 2)

    def ranks(deltas: Any, kinds: Any, names: Any = 0, partitions: Any = 0) -> Any:
        return ((deltas * sizes[0] + kinds) * sizes[1] + names) * sizes[2] + partitions

    of_changes = ranks(changes.deltas[changed], _TOPIC, names[: len(changed)], partitions + 1)
    order = np.argsort(of_changes)
    singles = [*elections, *((number, event) for number, *_, event in of_topics), *others]
    deltas = np.array([number for number, _ in singles], np.int64)
    kinds = [_DELETED_TOPIC if event.gone else _TOPIC for event in of_topics]
    kinds_of_singles = np.array([_ELECTION] * len(elections) + kinds + [_OTHER] * len(others), np.int64)
    names_of_singles = np.zeros(len(singles), np.int64)
    names_of_singles[len(elections) : len(elections) + len(of_topics)] = names[len(changed) :]
    of_singles = ranks(deltas, kinds_of_singles, names_of_singles)
    single_order = np.argsort(of_singles, kind="stable")
    events = SingleEvents(
        [singles[at][1] for at in single_order.tolist()], deltas[single_order], of_singles[single_order]
    )
    return event_rows(changes, changed[order], of_changes[order], events, boundaries)


def _hosted(changes: PartitionChanges, brokers: frozenset[int]) -> Any:
    """Whether one of the brokers has a replica of each partition, before or after the change (bool[n])."""
    hosted = np.zeros(len(changes), np.bool_)
    for flag, rows in ((HAD, changes.before), (HAS, changes.after)):
        some = np.flatnonzero(changes.flags & flag)
        bounds, members = changes.lists(np.ascontiguousarray(rows[some])).flat("replicas")
        found = np.flatnonzero(np.isin(members, [*brokers]))
        hosted[some[np.searchsorted(bounds, found, side="right") - 1]] = True
    return hosted


def _name_ranks(names: pa.Array, topics: Any) -> tuple[Any, int]:
    """The ranks of the names of topics (int64[n]) that are given by number, and their count."""
    used = np.zeros(len(names), np.bool_)
    used[topics] = True
    known = np.flatnonzero(used)
    ranks = np.zeros(len(names), np.int64)
    ranks[known] = pc.rank(names.take(pa.array(known)), tiebreaker="dense").to_numpy()
    return ranks[topics], len(known)


def _dense(partitions: Any) -> Any:
    """Numbers (int64) in the order of the partitions' ids, below _MANY_PARTITIONS or the number of partitions."""
    if len(partitions) and int(partitions.max()) >= _MANY_PARTITIONS:
        return np.unique(partitions, return_inverse=True)[1].reshape(-1)
    return partitions.astype(np.int64)
