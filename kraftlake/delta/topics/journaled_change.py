"""The change of packed topics by many records, with a journal of every version of each partition.

Imports numpy and numba.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_rows import COLUMNS
from kraftlake.kernels.replay import change_state as columns
from kraftlake.kernels.replay import partition_journal


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
        self._inner: list[tuple[Any, Any]] = []
        self._base_topics = base.table.topic_numbers()
        self._base_partitions = base.table.partition_ids()

    @property
    def place_count(self) -> int:
        """The number of places, including those of deleted partitions."""
        return self.packed.partition_count + int(self.state.counts[columns.N_FRESH])

    @property
    def topic_total(self) -> int:
        """The number of topics, including deleted ones."""
        return self.packed.table.topic_count + int(self.state.counts[columns.N_TOPICS])

    @property
    def directory_total(self) -> int:
        """The number of known directory ids."""
        return int(self.state.counts[columns.N_DIRECTORIES])

    def replay_journaled(self, data: Any, starts: Any, stops: Any) -> tuple[int, RowVersions]:
        """Replay the values data[starts[i]:stops[i]] (uint8; int64), all records of topics, as far as possible.

        Returns the number of values replayed, and the versions that they made.
        """
        cleared: list[tuple[int, Any, Any]] = []
        at, places, rows, did = self._run(data, starts, stops, cleared)
        places, rows = places[:at], rows[:at]
        kept = np.flatnonzero(places >= 0)
        made = (places, rows, did[:at]) if len(kept) == at else (places[kept], rows[kept], did[kept])
        parts = [(kept, *made[:2], np.zeros(len(kept), np.bool_), made[2])]
        for record, some, states in cleared:
            count = len(some)
            parts.append((np.full(count, record), some, states, np.zeros(count, np.bool_), np.zeros(count, np.uint8)))
        removing = np.flatnonzero(places < partition_journal.NO_PLACE)
        removals = np.stack((removing, -2 - places[removing]), axis=1)
        if len(removals):
            parts.append(self._removals(removals))
        joined = [*parts[0]]
        if len(parts) > 1:
            joined = [np.concatenate(part) for part in zip(*parts, strict=True)]
            order = np.argsort(joined[0], kind="stable")
            joined = [part[order] for part in joined]
        names = ("records", "places", "rows", "removed", "did")
        return at, RowVersions(**dict(zip(names, joined, strict=True)), removals=removals)

    def replay(
        self,
        data: Any,
        starts: Any,
        stops: Any,
        first: int,
        last: int,
        *,
        following: int = 0,  # noqa: ARG002
    ) -> tuple[int, list[tuple[int, str]]]:
        """As in `BulkChange`, for the records that replace a ClearElrRecord: they are journaled under its number."""
        at, places, rows, _ = self._run(data, starts[first:last], stops[first:last], None)
        self._inner.append((places[:at], rows[:at]))
        return first + at, []

    def topics_at(self, places: Any) -> Any:
        """The numbers of the topics of places (int32)."""
        return self._at(places, self._base_topics, self.state.fresh_topics)

    def partitions_at(self, places: Any) -> Any:
        """The ids of the partitions at places (int32)."""
        return self._at(places, self._base_partitions, self.state.fresh_partitions)

    def places_of(self, topics: Any) -> Any:
        """The places (int64, ascending) of all partitions, including deleted ones, of `topics` (bool[T], by number)."""
        known = self.packed.table.topic_count
        fresh = self.state.fresh_topics[: self.state.counts[columns.N_FRESH]]
        found = np.flatnonzero(topics[fresh]) + self.packed.partition_count
        if topics[:known].any():
            found = np.concatenate((np.flatnonzero(topics[self._base_topics]), found))
        return found

    def _at(self, places: Any, of_base: Any, fresh: Any) -> Any:
        known = self.packed.partition_count
        if not known:
            return fresh[places]
        found = of_base[np.minimum(places, known - 1)]
        behind = places >= known
        found[behind] = fresh[places[behind] - known]
        return found

    def _run(
        self, data: Any, starts: Any, stops: Any, cleared: list[tuple[int, Any, Any]] | None
    ) -> tuple[int, Any, Any, Any]:
        """Replay as far as possible; returns the number of values replayed, and places, rows and flags of each."""
        count = len(starts)
        self.unshare()
        places = np.full(count, partition_journal.NO_PLACE, np.int64)
        rows = np.empty((count, COLUMNS), np.int32)
        did = np.zeros(count, np.uint8)
        at, grown_at = 0, -1
        self.make_room(data, starts, stops, 0, count)
        while True:
            status, at = partition_journal.replay_journaled(
                data, starts, stops, at, count, *self.flattened, places, rows, did
            )
            if status == columns.GROW:
                assert at > grown_at, "one growth is enough for any record"
                grown_at = at
                self.grow(int(data[starts[at] + 1]))
            elif status == columns.STOPPED and cleared is not None and self._cleared_elr(data[starts[at] : stops[at]]):
                cleared += [(at, *inner) for inner in self._inner]
                at += 1
            else:
                break
        return int(at), places, rows, did

    def _cleared_elr(self, value: Any) -> bool:
        self._inner = []
        return super()._cleared_elr(value)

    def _removals(self, removals: Any) -> tuple[Any, Any, Any, Any, Any]:
        """A version for each partition of the removed topics."""
        removed_by = np.full(self.topic_total, -1, np.int64)
        removed_by[removals[:, 1]] = removals[:, 0]
        gone = self.places_of(removed_by >= 0)
        rows = np.zeros((len(gone), COLUMNS), np.int32)
        return removed_by[self.topics_at(gone)], gone, rows, np.ones(len(gone), np.bool_), np.zeros(len(gone), np.uint8)
