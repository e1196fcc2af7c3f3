"""The state of all partitions as arrays that records move on, by places that never change. Imports numpy and numba."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from kraftlake.delta.noting_change import Notes, NotingChange
from kraftlake.image.packed_topics import PackedTopics
from kraftlake.image.topic_table import TopicTable
from kraftlake.image.topics_image import TopicsImage
from kraftlake.kernels.broker_changes import HAD, HAS, WRITTEN
from kraftlake.kernels.change_state import DIRECTORIES_WRITTEN
from kraftlake.kernels.partition_journal import DID_ELIGIBLE, DID_UNCLEAN, heap_size, move_lists
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords
from kraftlake.spark_jobs.places import PlaceStrings, grown, is_worn
from kraftlake.spark_jobs.row_lists import RowLists


@attrs.frozen(kw_only=True, eq=False)
class Moved:
    """Partitions that metadata deltas have named: n of them, one for each partition and delta.

    `done` is the first record that was not replayed. `places` (int64[n]) are the partitions, `deltas` (int64[n]) the
    numbers of the deltas; `before` and `after` (int32[n, 14]) the rows at both ends of the delta, where `flags`
    (uint8[n], those of `kraftlake.kernels.broker_changes`) says that they count. `unclean` and `eligible` (int64[n])
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


class PartitionPlaces:
    """`rows` (int32[places, 14]) has the partition at each place of `change`, where `there` (bool) says that it is.

    `strings` are those of topics and directories.
    """

    def __init__(self, topics: TopicsImage) -> None:
        """Begin with the partitions of an image that `fits`; their places are the image's rows."""
        packed = topics.rows().merged()
        self.change = NotingChange(packed)
        self.rows = packed.rows.copy()
        self.there = np.ones(len(self.rows), np.bool_)
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
        change, known = self.change, self.change.topic_total
        stop, notes = change.note(records.data, records.starts, records.stops)
        done = stop if stop == len(records) else int(np.searchsorted(deltas, deltas[stop]))
        self._make_room()
        moved = self._move_on(notes, done, deltas, known)
        known += int(np.count_nonzero(records.kinds[:done] == TopicRecord.API_KEY))
        self._alive = change.state.alive[:known] != 0
        undone = notes.removals[notes.removals[:, 0] >= done, 1]
        self._alive[undone[undone < known]] = True
        return moved

    def _move_on(self, notes: Notes, done: int, deltas: Any, known: int) -> Moved:
        order = np.flatnonzero(notes.records < done)
        order = order[np.argsort(notes.places[order], kind="stable")]
        places, of_delta = notes.places[order], deltas[notes.records[order]]
        last = np.ones(len(order), np.bool_)
        last[:-1] = (places[1:] != places[:-1]) | (of_delta[1:] != of_delta[:-1])
        ends = np.flatnonzero(last)
        places, of_delta = places[ends], of_delta[ends]
        after, there = notes.rows[order[ends]], ~notes.removed[order[ends]]
        of_same = np.flatnonzero(places[1:] == places[:-1]) + 1
        before, had = self.rows[places], self.there[places]
        before[of_same], had[of_same] = after[of_same - 1], there[of_same - 1]
        newest = np.ones(len(places), np.bool_)
        newest[:-1] = places[1:] != places[:-1]
        self.rows[places[newest]] = after[newest]
        self.there[places[newest]] = there[newest]
        did, begins = notes.did[order], np.append(0, ends[:-1] + 1)[: len(ends)]
        written, unclean, eligible = (
            np.add.reduceat((did & bit) != 0, begins, dtype=np.int64) if len(ends) else np.empty(0, np.int64)
            for bit in (DIRECTORIES_WRITTEN, DID_UNCLEAN, DID_ELIGIBLE)
        )
        return Moved(
            done=done,
            places=places,
            deltas=of_delta,
            before=before,
            after=after,
            flags=(had * HAD + there * HAS + (written > 0) * WRITTEN).astype(np.uint8),
            unclean=unclean,
            eligible=eligible,
            removals=notes.removals[notes.removals[:, 0] < done],
            first_topic=known,
        )

    def _make_room(self) -> None:
        places = self.change.place_count
        if places > len(self.there):
            size = places + places // 2
            self.rows, self.there = grown(self.rows, size, 0), grown(self.there, size, 0)

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


def fits(topics: TopicsImage) -> bool:
    """Whether no partition has a list that is too long for compiled code."""
    packed = topics.rows().merged()
    return not RowLists(packed.rows, packed.heap, packed.heap).some_too_long()
