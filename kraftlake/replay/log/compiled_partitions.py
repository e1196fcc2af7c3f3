"""All partitions as arrays, changed by compiled code: nothing is done a record in Python. Imports numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.delta import MetadataDelta
from kraftlake.delta.faults import place_of
from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.record_fault import fault_of
from kraftlake.delta.topics.row_versions import RowVersions
from kraftlake.image import MetadataImage
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_rows import ROW_BYTES
from kraftlake.image.topics.topic_table import sorted_table
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels import compiled
from kraftlake.kernels.columns.change_buffers import FoldedChanges, PartitionsNow
from kraftlake.records.serde import UnknownRecord
from kraftlake.replay.log.effective_records import EffectiveRecords
from kraftlake.replay.log.partition_changes import HAD, HAS, Heaps, Names, PartitionChanges, PartitionRows
from kraftlake.runtime import KraftlakeError, ReplayError

_WORN_BYTES = 1 << 26


class CompiledPartitions:
    """The state of each partition by its place, which never changes: see `Journal`."""

    def __init__(self, topics: TopicsImage, since: Any, since_times: Any, *, of_shard: bool = False) -> None:
        """Begin with the partitions of an image, and since when each is so, in the order of `topics.rows()`.

        `of_shard` is that of PartitionStore.
        """
        packed = topics.rows().merged()
        assert len(since) == len(since_times) == len(packed.rows), "an offset and a time for each partition"
        self._change = BulkChange(packed, of_log=True, of_shard=of_shard)
        there = np.ones(len(packed.rows), np.uint8)
        newest, touched = np.zeros(len(packed.rows), np.int64), np.empty(1, np.int64)
        begins = np.array(since, np.int64), np.array(since_times, np.int64)
        self._now = PartitionsNow(there, *begins, newest, touched)
        self._sizes = np.diff(packed.table.starts).astype(np.int64)
        self._undone: tuple[Any, Any] = (newest[:0], packed.rows[:0])
        """The places that records have changed which were not folded, and the rows in front of these."""
        self._alive = np.ones(len(self._sizes), np.bool_)
        """Which topics exist, by number."""
        self._names = Names(*[pa.array([], pa.string())] * 3)

    @property
    def topic_count(self) -> int:
        """The number of topics."""
        return int(self._alive.sum())

    @property
    def count(self) -> int:
        """The number of partitions."""
        return int(self._sizes.sum())

    @property
    def is_worn(self) -> bool:
        """Whether much memory holds what is gone: lists of former states, places of removed partitions."""
        change = self._change
        lists = change.state.heap.nbytes > max(_WORN_BYTES, change.base.heap.nbytes)
        return lists or change.place_count * ROW_BYTES > _WORN_BYTES + 2 * self.count * ROW_BYTES

    def fold(
        self, records: EffectiveRecords, deltas: Any
    ) -> tuple[PartitionChanges, tuple[int, KraftlakeError] | None]:
        """Fold records of topics of whole deltas; gives the changes, and the first record that can't be replayed.

        With such a record, by number and with its error, the changes are those of the deltas before its own, and only
        `image` may be asked for after that.
        """
        stop, versions = self._change.replay_journaled(records.data, records.starts, records.stops)
        done = stop if stop == len(records) else int(np.searchsorted(deltas, deltas[stop]))
        self._make_room()
        created = versions.created[versions.created[:, 0] < done]
        removed = versions.removed[versions.removed[:, 0] < done]
        taken = int(np.searchsorted(versions.records, done))
        self._undone = versions.places[taken:], versions.before[taken:]
        self._alive = self._alive_after(created, removed)
        count, repeated, changes = self._fold(versions, records, deltas, taken)
        first, last = (changes.first, changes.last) if count < taken else (np.s_[:taken], np.s_[:taken])
        numbers, places = versions.records[first], versions.places[first]
        topics = self._change.topics_at(places)
        self._sizes = _sizes_after(self._sizes, self._change.topic_total, topics, changes.flags)
        found = PartitionChanges(
            offsets=records.effective[numbers],
            times=records.times[numbers],
            deltas=deltas[numbers],
            partitions=self._change.partitions_at(places),
            topics=topics,
            places=places,
            before=versions.before[first],
            after=versions.after[last],
            flags=changes.flags,
            altered=changes.altered.view(np.bool_),
            since=changes.since,
            since_times=changes.since_times,
            unclean=changes.unclean,
            eligible=changes.eligible,
            created=np.stack((deltas[created[:, 0]], created[:, 1]), axis=1),
            removed=np.stack((deltas[removed[:, 0]], removed[:, 1], removed[:, 0]), axis=1),
            sizes=self._sizes,
            names=self._learned(),
            heaps=self._heaps,
            repeated=repeated > 0,
        )
        return found, None if stop == len(records) else (stop, self._fault(records, stop))

    def rows(self) -> PartitionRows:
        """All partitions."""
        places, now = np.flatnonzero(self._now.there), self._now
        return PartitionRows(
            rows=self._change.rows_at(places),
            topics=self._change.topics_at(places),
            partitions=self._change.partitions_at(places),
            since=now.since[places],
            since_times=now.since_times[places],
            names=self._learned(),
            heaps=self._heaps,
        )

    def image(self) -> tuple[TopicsImage, Any, Any]:
        """The topics as an image, and since when each partition is so, in the order of its rows; shares no memory."""
        change, topics = self._change, np.flatnonzero(self._alive)
        places = np.flatnonzero(self._now.there)
        topic_of = np.searchsorted(topics, change.topics_at(places)).astype(np.int64)
        partitions = change.partitions_at(places)
        order = np.lexsort((partitions, topic_of))
        places, topic_of, partitions = places[order], topic_of[order], partitions[order]
        rows, lists = change.rows_at(np.arange(change.place_count)), change.heap()
        rows[self._undone[0][::-1]] = self._undone[1][::-1]  # the first of a partition is the one that stays
        rows = rows[places]
        heap = np.empty(compiled.heap_size(rows, lists), np.int32)
        compiled.move_lists(rows, lists, heap)
        known = [*change.packed.table.names, *change.new_names]
        table = sorted_table(
            [known[topic] for topic in topics.tolist()], change.topic_ids()[topics], topic_of, partitions
        )
        packed = PackedTopics(table=table, rows=rows, heap=heap, directories=change.directory_ids())
        return TopicsImage.with_rows(packed), self._now.since[places], self._now.since_times[places]

    def _fault(self, records: EffectiveRecords, place: int) -> KraftlakeError:
        """The error of a record that can't be replayed, with its offset."""
        offset = int(records.offsets[place])
        try:
            message = records.message(place)
            if isinstance(message, UnknownRecord):
                MetadataDelta(MetadataImage.EMPTY).replay(message, offset)  # raises what it is
        except KraftlakeError as error:
            return error
        return ReplayError(f"{place_of(message, offset)}{fault_of(self._change, message)}", offset=offset)

    def _alive_after(self, created: Any, removed: Any) -> Any:
        """Which topics exist after the records that created or removed some, in their order."""
        alive = _grown(self._alive, self._change.topic_total)
        events = [(*each, True) for each in created.tolist()] + [(*each, False) for each in removed.tolist()]
        for _, topic, exists in sorted(events):
            alive[topic] = exists
        return alive

    @property
    def _heaps(self) -> Heaps:
        return Heaps(self._change.base.heap, self._change.state.heap)

    def _fold(
        self, versions: RowVersions, records: EffectiveRecords, deltas: Any, taken: int
    ) -> tuple[int, int, FoldedChanges]:
        """Fold the first `taken` versions: the result of `fold_versions`, and the changes."""
        numbers = versions.records[:taken]
        some = (versions.places, versions.before, versions.after, versions.did)
        room = FoldedChanges._make([*np.empty((6, taken), np.int64), *np.empty((2, taken), np.uint8)])
        of = compiled.FoldedVersions(*(np.ascontiguousarray(array[:taken]) for array in some))
        at, now = (
            (records.effective[numbers], records.times[numbers], deltas[numbers]),
            compiled.PartitionsNow(*self._now),
        )
        count, repeated = compiled.fold_versions(of, *at, now, *self._heaps, compiled.FoldedChanges(*room))
        return count, repeated, FoldedChanges._make(array[:count] for array in room)

    def _make_room(self) -> None:
        places, now = self._change.place_count, self._now
        if places > len(now.there):
            size = places + places // 2
            self._now = PartitionsNow._make([*(_grown(array, size) for array in now[:-1]), now.touched])

    def _learned(self) -> Names:
        """The names, with those that came since the last call."""
        change, (topics, ids, directories) = self._change, self._names
        known, base = len(topics), change.packed.table.topic_count
        if known < change.topic_total:
            new = [*change.packed.table.names, *change.new_names] if known < base else change.new_names[known - base :]
            topics = pa.concat_arrays([topics, pa.array(new, pa.string())])
            new_ids = [str(change.topic_id(number)) for number in range(known, len(topics))]
            ids = pa.concat_arrays([ids, pa.array(new_ids, pa.string())])
        if len(directories) < change.directory_total:
            directories = pa.array(map(str, change.directory_ids()), pa.string())
        self._names = Names(topics, ids, directories)
        return self._names


def _sizes_after(sizes: Any, total: int, topics: Any, flags: Any) -> Any:
    """The number of partitions of each topic after changes, of `total` topics; a new array where it differs."""
    for flag, sign in ((HAS, 1), (HAD, -1)):
        some = topics[flags & (HAD | HAS) == flag]
        if len(some) or total > len(sizes):
            counted = sign * np.bincount(some, minlength=total)
            counted[: len(sizes)] += sizes
            sizes = counted
    return sizes


def _grown(array: Any, size: int) -> Any:
    """A larger array with the same values at its beginning, then zeros."""
    larger = np.zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
