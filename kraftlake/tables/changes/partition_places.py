"""The state of all partitions as arrays that records move on, by places that never change. Imports numpy and numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs
import numpy as np

from kraftlake.delta.topics.journaled_change import JournaledChange, RowVersions
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels.columns.partition_moves import move_on
from kraftlake.kernels.replay.partition_journal import heap_size, move_lists
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.changes.places import PlaceStrings, grown, is_worn
from kraftlake.tables.row_lists import RowLists


@attrs.frozen(kw_only=True, eq=False)
class Moved:
    """Partitions that metadata deltas have named: n of them, one for each partition and delta, by delta.

    `done` is the first record that was not replayed. `places` (int64[n]) are the partitions, `deltas` (int64[n]) the
    numbers of the deltas; `before` and `after` (int32[n, 14]) the rows at both ends of the delta, where `flags`
    (uint8[n], those of `kernels.columns.broker_changes`) says that they count. `unclean` and `eligible` (int64[n])
    are how many unclean elections there were, and from the eligible leader replicas. `removals` (int64[m, 2]) are the
    records that have removed topics, with the topics' numbers; the topics that were created have the numbers from
    `first_topic` on.
    """

    done: int
    places: Any
    deltas: Any
    before: Any
    after: Any
    flags: Any
    unclean: Any
    eligible: Any
    removals: Any
    first_topic: int


class _Notes(NamedTuple):
    """What compiled code takes of `RowVersions`."""

    places: Any
    rows: Any
    removed: Any
    did: Any


class _Now(NamedTuple):
    """What partitions are, by place: see `kraftlake.kernels.columns.partition_moves`."""

    rows: Any
    there: Any
    told: Any
    touched: Any


class _Moves(NamedTuple):
    """Room for what `move_on` tells."""

    places: Any
    deltas: Any
    before: Any
    after: Any
    flags: Any
    elections: Any

    @classmethod
    def room(cls, size: int) -> _Moves:
        """Room for so many."""
        (places, deltas), (before, after) = np.empty((2, size), np.int64), np.empty((2, size, COLUMNS), np.int32)
        return cls(places, deltas, before, after, np.empty(size, np.uint8), np.empty((size, 2), np.int64))


class PartitionPlaces:
    """`rows` (int32[places, 14]) has the partition at each place of `change`, where `there` (bool) says that it is.

    `strings` are those of topics and directories.
    """

    def __init__(self, topics: TopicsImage) -> None:
        """Begin with the partitions of an image that `fits`; their places are the image's rows."""
        packed = topics.rows().merged()
        self.change = JournaledChange(packed)
        self.rows = packed.rows.copy()
        self.there = np.ones(len(self.rows), np.bool_)
        self._told = np.zeros(len(self.rows), np.int64)
        self._touched = np.empty(1, np.int64)
        self._alive = np.ones(self.change.topic_total, np.bool_)
        """Which topics are there, by number."""
        self.strings = PlaceStrings(self.change)

    @property
    def is_worn(self) -> bool:
        """Whether much of the memory is taken by what is gone: lists of former states, places of removed partitions."""
        return is_worn(self.change, int(np.count_nonzero(self.there)))

    def replay(self, records: EffectiveRecords, deltas: Any) -> Moved:
        """Replay records of topics, of whole deltas, as far as that goes; `deltas` (int64) are the numbers of theirs.

        Where a record is not replayed none of its delta is; nothing may be replayed after that, but `topics` asked for.
        """
        first_topic = self.change.topic_total
        done, notes, of_delta, removals = self._note(records, deltas)
        moves = _Moves.room(len(of_delta))
        count = move_on(notes, of_delta, self._now, moves)
        places, of_delta, before, after, flags, elections = (array[:count] for array in moves)
        return Moved(
            done=done,
            places=places,
            deltas=of_delta,
            before=before,
            after=after,
            flags=flags,
            unclean=elections[:, 0],
            eligible=elections[:, 1],
            removals=removals,
            first_topic=first_topic,
        )

    @property
    def _now(self) -> _Now:
        return _Now(self.rows, self.there.view(np.uint8), self._told, self._touched)

    def _note(self, records: EffectiveRecords, deltas: Any) -> tuple[int, _Notes, Any, Any]:
        """How far the records are replayed, the notes of these, the notes' deltas, and the removals of topics."""
        change, known = self.change, self.change.topic_total
        stop, notes = change.replay_journaled(records.data, records.starts, records.stops)
        done = stop if stop == len(records) else int(np.searchsorted(deltas, deltas[stop]))
        self._make_room()
        known += int(np.count_nonzero(records.kinds[:done] == TopicRecord.API_KEY))
        self._alive = change.state.alive[:known] != 0
        is_done = notes.removals[:, 0] < done
        undone = notes.removals[~is_done, 1]
        self._alive[undone[undone < known]] = True
        count = int(np.searchsorted(notes.records, done))
        return done, _notes_of(notes, count), deltas[notes.records[:count]], notes.removals[is_done]

    def _make_room(self) -> None:
        places = self.change.place_count
        if places > len(self.there):
            size = places + places // 2
            self.rows, self.there = grown(self.rows, size, 0), grown(self.there, size, 0)
            self._told = grown(self._told, size, 0)

    def topics(self) -> TopicsImage:
        """The topics that are there as an image of its own."""
        change, topics = self.change, np.flatnonzero(self._alive)
        places = np.flatnonzero(self.there)
        topic_of = np.searchsorted(topics, change.topics_at(places)).astype(np.int64)
        partitions = change.partitions_at(places)
        order = np.lexsort((partitions, topic_of))
        places, topic_of, partitions = places[order], topic_of[order], partitions[order]
        starts = np.zeros(len(topics) + 1, np.int32)
        np.cumsum(np.bincount(topic_of, minlength=len(topics)), out=starts[1:])
        odd = np.unique(topic_of[partitions != np.arange(len(partitions)) - starts[topic_of]])
        sparse = {topic: tuple(partitions[starts[topic] : starts[topic + 1]].tolist()) for topic in odd.tolist()}
        rows, lists = np.ascontiguousarray(self.rows[places]), change.heap()
        heap = np.empty(heap_size(rows, lists), np.int32)
        move_lists(rows, lists, heap)
        known = [*change.packed.table.names, *change.new_names]
        ids = np.frombuffer(b"".join(map(change.topic_id, topics.tolist())), np.uint8).reshape(-1, 16).copy()
        table = TopicTable([known[topic] for topic in topics.tolist()], ids, starts, sparse)
        return TopicsImage.with_rows(
            PackedTopics(table=table, rows=rows, heap=heap, directories=change.directory_ids())
        )


def _notes_of(notes: RowVersions, count: int) -> _Notes:
    """The first of them."""
    some = (notes.places, notes.rows, notes.removed.view(np.uint8), notes.did)
    return _Notes(*(np.ascontiguousarray(array[:count]) for array in some))


def fits(topics: TopicsImage) -> bool:
    """Whether no partition has a list that is too long for compiled code."""
    packed = topics.rows().merged()
    return not RowLists(packed.rows, packed.heap, packed.heap).some_too_long()
