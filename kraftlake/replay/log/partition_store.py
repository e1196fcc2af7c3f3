"""The partitions of a cluster behind a log's deltas: one store for all tables of a run. Imports numpy.

Records go in (`fold`), and the partitions that they change come out, before and after each change, as PartitionChanges:
columns that the tables are functions of. Nothing is done a record in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import attrs
import numpy as np
import pyarrow as pa

from kraftlake.delta.faults import place_of
from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.bulk_change import TOPIC_KINDS, BulkChange
from kraftlake.delta.topics.record_fault import fault_of
from kraftlake.delta.topics.row_versions import RowVersions
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_rows import ROW_BYTES
from kraftlake.image.topics.topic_table import sorted_table
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.kernels import compiled
from kraftlake.kernels.columns.change_buffers import FoldedChanges, PartitionsNow
from kraftlake.records.serde import UnknownRecord
from kraftlake.replay.log.effective_records import UNKNOWN_KIND, EffectiveRecords
from kraftlake.replay.log.partition_changes import HAD, HAS, Heaps, Names, PartitionChanges, PartitionRows
from kraftlake.runtime.errors import KraftlakeError, ReplayError

_WORN_BYTES = 1 << 26
_VERSIONS: Final = tuple(field.name for field in attrs.fields(RowVersions))

Fault: TypeAlias = tuple[int, KraftlakeError]
"""The number of a record and what is wrong with it."""
Skip: TypeAlias = Callable[[int, KraftlakeError], None]
"""Takes note of the fault of a record that is left out."""


class PartitionStore:
    """The state of each partition, and the offset and time at which it began, after the records that were folded.

    A partition has a place, which does not change until memory is given back: see `Journal`. What comes out depends on
    the records and deltas alone, not on how they are cut: between two deltas.
    """

    def __init__(self, topics: TopicsImage = TopicsImage.EMPTY, *, of_shard: bool = False) -> None:
        """Begin with an image.

        Each state begins at offset and time -1, unless `begin` says otherwise. `of_shard`: a ClearElrRecord may name a
        topic that is not here.
        """
        self._of_shard = of_shard
        self.begin(topics, -1, -1)

    def begin(self, topics: TopicsImage, since: Any, since_times: Any) -> None:
        """Begin with the partitions of an image.

        `since` and `since_times` (epoch ms, -1 for none) are int64 arrays in the order of `topics.rows()`, or one
        number for all partitions: where the state of each began.
        """
        packed = topics.rows().merged()
        count = packed.partition_count
        begins = np.full(count, since, np.int64), np.full(count, since_times, np.int64)
        newest, touched = np.zeros(count, np.int64), np.empty(1, np.int64)
        self._change = BulkChange(packed, of_log=True, of_shard=self._of_shard)
        self._base_heap = np.asarray(packed.heap)
        self._now = PartitionsNow(np.ones(count, np.uint8), *begins, newest, touched)
        self._sizes = np.diff(packed.table.starts).astype(np.int64)
        self._undone: tuple[Any, Any] = (newest[:0], packed.rows[:0])
        """The places that records have changed which were not folded, and the rows in front of these."""
        self._alive = np.ones(len(self._sizes), np.bool_)
        """A mask of the topics that exist, by number."""
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
        self, records: EffectiveRecords, deltas: Any, end: int, skip: Skip | None = None
    ) -> tuple[PartitionChanges, Fault | None]:
        """Fold the records of deltas, which follow those before; `deltas` (int64, ascending) are their numbers.

        Gives the changes; records of other kinds make none. A record that can't be replayed is left out and passed to
        `skip` with its number and error; without `skip` it is given: the store then holds the deltas before its own,
        and nothing can be folded after that. Of the deltas from `end` on nothing but such a record is wanted.
        """
        if self.is_worn:
            self.begin(*self.image())
        chosen = np.flatnonzero(records.are_of((*TOPIC_KINDS, UNKNOWN_KIND)))
        some, deltas_of = records.where(chosen), deltas[chosen]
        versions, fault = self._journaled(
            some,
            skip and (lambda place, error: skip(int(chosen[place]), error)),  # as numbers among all records
        )
        last = end if fault is None else min(end, int(deltas_of[fault[0]]))
        changes = self._folded(versions, some, deltas_of, last)
        changes.removed[:, 2] = chosen[changes.removed[:, 2]]
        return changes, None if fault is None else (int(chosen[fault[0]]), fault[1])

    def _journaled(self, records: EffectiveRecords, skip: Skip | None) -> tuple[RowVersions, Fault | None]:
        """Replay records; gives the versions that they make, and the first that can't be replayed."""
        runs, first = list[tuple[int, RowVersions]](), 0
        while True:
            stop, versions = self._change.replay_journaled(records.data, records.starts[first:], records.stops[first:])
            runs.append((first, versions))
            first += stop
            fault = None if first == len(records) else (first, self._fault(records, first))
            if fault is None or skip is None:
                return _joined(runs), fault
            skip(*fault)
            first += 1

    def _folded(self, versions: RowVersions, records: EffectiveRecords, deltas: Any, last: int) -> PartitionChanges:
        """The changes that the versions of the deltas before `last` make; the others are undone."""
        done = int(np.searchsorted(deltas, last))
        self._make_room()
        created = versions.created[versions.created[:, 0] < done]
        removed = versions.removed[versions.removed[:, 0] < done]
        taken = int(np.searchsorted(versions.records, done))
        self._undone = versions.places[taken:], versions.before[taken:]
        self._alive = self._alive_after(created, removed)
        count, repeated, changes = self._fold(versions, records, deltas, taken)
        some = (changes.first, changes.last) if count < taken else (np.s_[:taken], np.s_[:taken])
        numbers, places = versions.records[some[0]], versions.places[some[0]]
        topics = self._change.topics_at(places)
        self._sizes = _sizes_after(self._sizes, self._change.topic_total, topics, changes.flags)
        return PartitionChanges(
            offsets=records.effective[numbers],
            times=records.times[numbers],
            deltas=deltas[numbers],
            partitions=self._change.partitions_at(places),
            topics=topics,
            places=places,
            before=versions.before[some[0]],
            after=versions.after[some[1]],
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

    def rows(self) -> PartitionRows:
        """All partitions, with where the state of each began."""
        places, now = np.flatnonzero(self._now.there), self._now
        return PartitionRows(
            rows=self._rows_at(places),
            topics=self._change.topics_at(places),
            partitions=self._change.partitions_at(places),
            since=now.since[places],
            since_times=now.since_times[places],
            names=self._learned(),
            heaps=self._heaps,
        )

    def topics(self) -> TopicsImage:
        """The topics as an image."""
        return self.image()[0]

    def image(self) -> tuple[TopicsImage, Any, Any]:
        """The topics as an image, and since which offset and time each partition is so: what `begin` takes.

        It shares no memory with the store.
        """
        change, topics = self._change, np.flatnonzero(self._alive)
        places = np.flatnonzero(self._now.there)
        topic_of = np.searchsorted(topics, change.topics_at(places)).astype(np.int64)
        partitions = change.partitions_at(places)
        order = np.lexsort((partitions, topic_of))
        places, topic_of, partitions = places[order], topic_of[order], partitions[order]
        rows, lists = self._rows_at(places), change.heap()
        heap = np.empty(compiled.heap_size(rows, lists), np.int32)
        compiled.move_lists(rows, lists, heap)
        known = [*change.packed.table.names, *change.new_names]
        ids = np.frombuffer(change.topic_ids(), "V16")
        table = sorted_table([known[topic] for topic in topics.tolist()], ids[topics], topic_of, partitions)
        packed = PackedTopics(table=table, rows=rows, heap=heap, directories=change.directory_ids())
        return TopicsImage.with_rows(packed), self._now.since[places], self._now.since_times[places]

    def _rows_at(self, places: Any) -> Any:
        """A copy of the rows at places, without what is undone."""
        if not len(self._undone[0]):
            return self._change.rows_at(places)
        rows = self._change.rows_at(np.arange(self._change.place_count))
        rows[self._undone[0][::-1]] = self._undone[1][::-1]  # the first of a partition is the one that stays
        return rows[places]

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
        """A mask of the topics that exist after the records that created or removed some, in their order."""
        alive = _grown(self._alive, self._change.topic_total)
        events = [(*each, True) for each in created.tolist()] + [(*each, False) for each in removed.tolist()]
        for _, topic, exists in sorted(events):
            alive[topic] = exists
        return alive

    @property
    def _heaps(self) -> Heaps:
        return Heaps(self._base_heap, np.asarray(self._change.state.heap))

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


def _joined(runs: Sequence[tuple[int, RowVersions]]) -> RowVersions:
    """The versions of runs of records that follow each other, each with the number of its first record."""
    if len(runs) == 1:
        return runs[0][1]
    columns = {name: [getattr(versions, name) for _, versions in runs] for name in _VERSIONS}
    columns["records"] = [first + versions.records for first, versions in runs]
    for name in ("created", "removed"):
        columns[name] = [getattr(versions, name) + np.array([first, 0]) for first, versions in runs]
    return RowVersions(**{name: np.concatenate(column) for name, column in columns.items()})


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
