"""The change of packed topics by many records, with a journal of every version of each partition.

Imports numpy and numba.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.kernels.replay import partition_journal
from kraftlake.kernels.replay.change_state import N_DIRECTORIES, N_FRESH, N_TOPICS


@attrs.frozen(kw_only=True, eq=False)
class RowVersions:
    """The versions of partitions, in the order of the records.

    `records` (int64[n]): numbers of the records. `places` (int64[n]): the partitions, by place. `rows` (int32[n, 14]):
    their rows after the record. `removed` (bool[n]): true if the record removed the topic; the row is then all zeros.
    `did` (uint8[n]): flags of `partition_journal`: the record wrote the partition's directories, even if with the same
    ids (DIRECTORIES_WRITTEN), or was an election (DID_UNCLEAN, DID_ELIGIBLE). `removals` (int64[m, 2]): the records
    that removed topics, with the topics' numbers.
    """

    records: Any
    places: Any
    rows: Any
    removed: Any
    did: Any
    removals: Any


class JournaledChange(BulkChange):
    """A `BulkChange` that keeps a journal; it is not applied in between, so that places stay valid.

    A place is the row of a partition in the base, or the number of rows of the base plus its fresh row.
    """

    def __init__(self, base: PackedTopics) -> None:
        super().__init__(base.merged())
        self._cleared: list[tuple[int, Any, Any]] = []
        """Numbers of ClearElrRecords, with the places and rows of the changes that replace each."""
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

        Returns the number of values replayed, and the versions that they made.
        """
        self._cleared = []
        at, places, rows, did = self._replay_all(data, starts, stops)
        places, rows = places[:at], rows[:at]
        changed = np.flatnonzero(places >= 0)
        of_changed = changed if len(changed) < at else slice(at)  # a slice copies nothing
        removed = np.zeros(len(changed), np.bool_)
        versions = [(changed, places[of_changed], rows[of_changed], removed, did[of_changed])]
        for record, cleared, states in self._cleared:
            if record < at:  # else objects clear the remaining ones
                none = np.zeros(len(cleared), np.uint8)
                versions.append((np.full(len(cleared), record), cleared, states, none.astype(np.bool_), none))
        removing = np.flatnonzero(places < partition_journal.NO_PLACE)
        removals = np.stack((removing, -2 - places[removing]), axis=1)
        if len(removals):
            versions.append(self._removals(removals))
        joined: Sequence[Any] = versions[0]
        if len(versions) > 1:
            order = np.argsort(np.concatenate([each[0] for each in versions]), kind="stable")
            joined = [np.concatenate(column)[order] for column in zip(*versions, strict=True)]
        records, places, rows, removed, did = joined
        made = RowVersions(records=records, places=places, rows=rows, removed=removed, did=did, removals=removals)
        return at, made

    def _replay_changes(self, data: Any, starts: Any, stops: Any, number: int) -> int:
        at, places, rows, _ = self._replay_all(data, starts, stops)
        self._cleared.append((number, places[:at], rows[:at]))
        return at

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

    def _replay_all(self, data: Any, starts: Any, stops: Any) -> tuple[int, Any, Any, Any]:
        """Replay as far as possible; returns the number of values replayed, and places, rows and flags of each."""
        count = len(starts)
        self.unshare()
        self.make_room(data, starts, stops, 0, count)
        places = np.full(count, partition_journal.NO_PLACE, np.int64)
        rows = np.empty((count, COLUMNS), np.int32)
        did = np.zeros(count, np.uint8)

        def replay_from(at: int) -> tuple[int, int]:
            journal = (places, rows, did)
            replayed: tuple[int, int] = partition_journal.replay_journaled(
                data, starts, stops, at, count, *self.flattened, *journal
            )
            return replayed

        return self._replay_on(replay_from, data, starts, stops, 0), places, rows, did

    def _removals(self, removals: Any) -> tuple[Any, Any, Any, Any, Any]:
        """A version for each partition of the removed topics."""
        removed_by = np.full(self.topic_total, -1, np.int64)
        removed_by[removals[:, 1]] = removals[:, 0]
        places = self.places_of(removed_by >= 0)
        count = len(places)
        rows, flags = np.zeros((count, COLUMNS), np.int32), np.zeros(count, np.uint8)
        return removed_by[self.topics_at(places)], places, rows, np.ones(count, np.bool_), flags
