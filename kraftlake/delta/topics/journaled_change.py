"""The change of packed topics by many records, with a journal of every version of each partition. Imports numpy."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.kernels import compiled
from kraftlake.kernels.replay.change_state import N_DIRECTORIES, N_FRESH, N_TOPICS
from kraftlake.kernels.replay.journal import NO_PLACE, Journal


@attrs.frozen(kw_only=True, eq=False)
class RowVersions:
    """The versions of partitions, in the order of the records.

    `records` (int64[n]): numbers of the records. `places` (int64[n]): the partitions, by place. `before` and `after`
    (int32[n, 14]): their rows around the record, all zeros where there is no partition. `removed` (bool[n]): true if
    the record removed the topic. `did` (uint8[n]): flags of `Journal`: the record wrote the partition's
    directories, even if with the same ids (DIRECTORIES_WRITTEN), or was an election (DID_UNCLEAN, DID_ELIGIBLE).
    `removals` (int64[m, 2]): the records that removed topics, with the topics' numbers.
    """

    records: Any
    places: Any
    before: Any
    after: Any
    removed: Any
    did: Any
    removals: Any


class _Journal(Journal):
    """The versions that compiled code makes, as arrays."""

    @classmethod
    def of(cls, size: int) -> _Journal:
        """Room for a number of versions."""
        numbers, rows = np.empty((2, size), np.int64), [np.empty((size, COLUMNS), np.int32) for _ in range(2)]
        return cls._make([*numbers, *rows, np.empty(size, np.uint8)])

    def where(self, some: Any) -> _Journal:
        """The versions that a slice or an array of indices names."""
        return _Journal(*(array[some] for array in self))


class JournaledChange(BulkChange):
    """A `BulkChange` that keeps a journal; it is not applied in between, so that places stay valid.

    A place is the row of a partition in the base, or the number of rows of the base plus its fresh row.
    """

    def __init__(self, base: PackedTopics) -> None:
        super().__init__(base.merged())
        self._cleared: list[_Journal] = []
        """Of each ClearElrRecord the changes that replace it."""
        self._base_topics = base.table.topic_numbers()
        self._base_partitions = base.table.partition_ids()

    @property
    def place_count(self) -> int:
        """The number of places, including those of deleted partitions."""
        return self.packed.partition_count + self.count(N_FRESH)

    @property
    def topic_total(self) -> int:
        """The number of topics, including deleted ones."""
        return self.packed.table.topic_count + self.count(N_TOPICS)

    @property
    def directory_total(self) -> int:
        """The number of known directory ids."""
        return self.count(N_DIRECTORIES)

    def replay_journaled(self, data: Any, starts: Any, stops: Any) -> tuple[int, RowVersions]:
        """Replay the values data[starts[i]:stops[i]] (uint8; int64), all records of topics, as far as possible.

        Returns the number of values replayed, and the versions that they made; after these, the versions of the next
        value where it is a ClearElrRecord that was replayed in part.
        """
        self._cleared = []
        at, journal = self._replay_all(data, starts, stops)
        is_removal = journal.places < NO_PLACE
        removals = np.stack((journal.records[is_removal], -2 - journal.places[is_removal]), axis=1)
        gone = 0
        if self._cleared or len(removals):
            removed = self._removed(removals)
            journals = [journal.where(~is_removal), *self._cleared, removed]
            journal, gone = _Journal(*map(np.concatenate, zip(*journals, strict=True))), len(removed.records)
        is_removed = np.zeros(len(journal.records), np.bool_)
        is_removed[len(is_removed) - gone :] = True
        columns = {**journal._asdict(), "removed": is_removed}
        if self._cleared or gone:
            order = np.argsort(journal.records, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        return at, RowVersions(**columns, removals=removals)

    def _replay_changes(self, data: Any, starts: Any, stops: Any, number: int) -> int:
        at, journal = self._replay_all(data, starts, stops)
        journal.records[:], journal.did[:] = number, 0
        self._cleared.append(journal)
        return at

    def rows_at(self, places: Any) -> Any:
        """The rows of places (int32[n, 14]), of deleted partitions as they were last."""
        state = self.state
        is_dense = len(state.dense_flags) > 0
        rows = self._at(places, state.dense_rows if is_dense else self.packed.rows, state.fresh_rows)
        if not is_dense and len(state.slots):
            of_base = np.flatnonzero(places < self.packed.partition_count)
            touched = state.slots[places[of_base]] - 1
            is_touched = touched >= 0
            rows[of_base[is_touched]] = state.touched_rows[touched[is_touched]]
        return rows

    def topics_at(self, places: Any) -> Any:
        """The numbers of the topics of places (int32)."""
        return self._at(places, self._base_topics, self.state.fresh_topics)

    def partitions_at(self, places: Any) -> Any:
        """The ids of the partitions at places (int32)."""
        return self._at(places, self._base_partitions, self.state.fresh_partitions)

    def places_of(self, topics: Any) -> Any:
        """The places (int64, ascending) of all partitions, including deleted ones, of `topics` (bool[T], by number)."""
        known = self.packed.table.topic_count
        fresh = self.state.fresh_topics[: self.state.counts[N_FRESH]]
        found = np.flatnonzero(topics[fresh]) + self.packed.partition_count
        if topics[:known].any():
            found = np.concatenate((np.flatnonzero(topics[self._base_topics]), found))
        return found

    def _at(self, places: Any, of_base: Any, fresh: Any) -> Any:
        known = self.packed.partition_count
        if not known:
            return fresh[places]
        found = of_base[np.minimum(places, known - 1)]
        is_fresh = places >= known
        found[is_fresh] = fresh[places[is_fresh] - known]
        return found

    def _replay_all(self, data: Any, starts: Any, stops: Any) -> tuple[int, _Journal]:
        """Replay as far as possible; returns the number of values replayed, and the journal of these."""
        count, made = len(starts), 0
        self.unshare()
        self.make_room(data, starts, stops, 0, count)
        journal = _Journal.of(count)
        room = compiled.Journal(*journal)

        def replay_from(at: int) -> tuple[int, int]:
            nonlocal made
            status, at, made = compiled.replay_journaled(data, starts, stops, at, count, *self.buffers, room, made)
            return status, at

        at = self._replay_on(replay_from, data, starts, stops, 0)
        return at, journal.where(np.s_[:made])

    def _removed(self, removals: Any) -> _Journal:
        """A version for each partition of the removed topics."""
        removed_by = np.full(self.topic_total, -1, np.int64)
        removed_by[removals[:, 1]] = removals[:, 0]
        places = self.places_of(removed_by >= 0)
        before = self.rows_at(places)  # nothing changes a removed partition
        records, did = removed_by[self.topics_at(places)], np.zeros(len(places), np.uint8)
        return _Journal(records, places, before, np.zeros_like(before), did)
