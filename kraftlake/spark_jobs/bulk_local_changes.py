"""The topics as arrays by place, and what metadata deltas make of them told to all brokers, as columns.

Nothing is done a record in Python. Imports numpy and numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.delta.noting_change import Notes
from kraftlake.image.topics_image import TopicsImage
from kraftlake.kernels.broker_changes import HAD, HAS, WRITTEN
from kraftlake.records.metadata_records import TopicRecord
from kraftlake.spark_jobs.delta_heads import DeltaHeads
from kraftlake.spark_jobs.history.effective_records import EffectiveRecords
from kraftlake.spark_jobs.local_change_columns import ChangedPartitions, Strings, has_long_lists, local_change_table
from kraftlake.spark_jobs.partition_places import PartitionPlaces


class BulkLocalChanges:
    """The topics after a metadata delta; `take` moves them on over further deltas."""

    def __init__(self, topics: TopicsImage) -> None:
        """Begin with an image that `fits`."""
        self._places = PartitionPlaces(topics)
        self._alive = np.ones(self._places.change.topic_total, np.bool_)
        """Which topics are there, by number."""

    @property
    def is_worn(self) -> bool:
        """Whether much of the memory is taken by what is gone."""
        return self._places.is_worn

    def topics(self) -> TopicsImage:
        """The topics as an image."""
        return self._places.topics(np.flatnonzero(self._alive))

    def take(self, records: EffectiveRecords, deltas: Any, heads: DeltaHeads) -> tuple[int, pa.Table]:
        """Replay records of topics, of whole deltas, as far as that goes: gives the first that was not, and the rows.

        `deltas` (int64) are the numbers of the records' deltas among the heads. Where a record was not replayed none of
        its delta was; nothing may be taken after that, but `topics` asked for.
        """
        change = self._places.change
        known = change.topic_total
        stop, notes = change.note(records.data, records.starts, records.stops)
        done = stop if stop == len(records) else int(np.searchsorted(deltas, deltas[stop]))
        self._places.make_room()
        rows = self._told(self._moved_on(notes, notes.records < done, deltas), heads)
        known += int(np.count_nonzero(records.kinds[:done] == TopicRecord.API_KEY))
        self._alive = change.state.alive[:known] != 0
        undone = notes.removals[notes.removals[:, 0] >= done, 1]
        self._alive[undone[undone < known]] = True
        return done, rows

    def as_new(self, heads: DeltaHeads) -> pa.Table:
        """The rows of the one metadata delta that makes the image of the empty one."""
        count = len(self._places.rows)
        return self._told((np.arange(count), np.zeros(count, np.int64), np.zeros_like(self._places.rows),
                           self._places.rows, np.full(count, HAS, np.uint8)), heads)  # fmt: skip

    def _moved_on(self, notes: Notes, kept: Any, deltas: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Move the places on by the notes that are kept.

        Gives places, deltas, rows before, rows after and flags: one for each place and delta.
        """
        order = np.flatnonzero(kept)
        order = order[np.argsort(notes.places[order], kind="stable")]
        places, of_delta = notes.places[order], deltas[notes.records[order]]
        last = np.ones(len(order), np.bool_)
        last[:-1] = (places[1:] != places[:-1]) | (of_delta[1:] != of_delta[:-1])
        ends = np.flatnonzero(last)
        if not len(ends):
            return places, of_delta, notes.rows[:0], notes.rows[:0], np.empty(0, np.uint8)
        begins = np.append(0, ends[:-1] + 1)
        written = np.logical_or.reduceat(notes.written[order], begins)
        places, of_delta = places[ends], of_delta[ends]
        after, there = notes.rows[order[ends]], ~notes.removed[order[ends]]
        of_same = np.flatnonzero(places[1:] == places[:-1]) + 1
        before, had = self._places.rows[places], self._places.there[places]
        before[of_same], had[of_same] = after[of_same - 1], there[of_same - 1]
        newest = np.append(places[1:] != places[:-1], True)
        self._places.rows[places[newest]] = after[newest]
        self._places.there[places[newest]] = there[newest]
        return places, of_delta, before, after, (had * HAD + there * HAS + written * WRITTEN).astype(np.uint8)

    def _told(self, changed: tuple[Any, Any, Any, Any, Any], heads: DeltaHeads) -> pa.Table:
        places, of_delta, before, after, flags = changed
        of_places = self._places
        of_places.learn()
        change = of_places.change
        return local_change_table(
            ChangedPartitions(
                before=before,
                after=after,
                flags=flags,
                deltas=of_delta,
                topics=change.topics_at(places),
                partitions=change.partitions_at(places),
                base=change.base,
                state=change.state,
            ),
            heads,
            Strings(
                name=of_places.names.__getitem__,
                topic_id=of_places.ids.__getitem__,
                directories=of_places.directories,
            ),
        )


def fits(topics: TopicsImage) -> bool:
    """Whether no partition has a list that is too long for compiled code."""
    packed = topics.rows().merged()
    return not has_long_lists(packed.rows, packed.heap, packed.heap)
