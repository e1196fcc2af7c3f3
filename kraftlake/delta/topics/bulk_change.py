"""The change of a packed image by many records, replayed as bytes. Imports numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kraftlake.delta.topics.bulk_clear_elr import changes_clearing_elr
from kraftlake.delta.topics.bulk_state import BulkState
from kraftlake.image.topics.packed_topics import PATCHES_BELOW, PackedTopics
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import COLUMNS, registration_of
from kraftlake.image.topics.row_queries import rows_hosting
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.kernels import compiled
from kraftlake.kernels.replay.change_state import GROW, N_FRESH, N_ODD, N_OTHERS, N_TOPICS, N_TOUCHED, STOPPED, TOUCHED
from kraftlake.records.uuid import Uuid


class BulkChange(BulkState):
    """The effect of records on `base`, as rows.

    Touched rows are changed rows of the base; fresh rows are those of new partitions. A *place* is a number that counts
    the touched rows, then the fresh ones. Source of the semantics: `ObjectChange` and `TopicDelta`.
    """

    def replay(
        self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0
    ) -> tuple[int, list[tuple[int, str]]]:
        """Replay the record values data[starts[i]:stops[i]] (uint8; int64), i in [first, last), as far as possible.

        Returns the number of the first value that was not replayed (`last` if all were), and the values before it that
        other parts have to replay: their numbers, with "", or with the topic's name for a RemoveTopicRecord. Memory is
        reserved for about `following` more records.
        """
        self.unshare()
        self.make_room(data, starts, stops, first, last, following=following)
        others = np.empty((last - first, 2), np.int64)
        seen: list[list[int]] = []

        def replay_from(at: int) -> tuple[int, int]:
            self.state.counts[N_OTHERS] = 0
            status, at = compiled.replay(data, starts, stops, at, last, *self.buffers, others)
            seen.extend(others[: self.state.counts[N_OTHERS]].tolist())
            return status, at

        at = self._replay_on(replay_from, data, starts, stops, first)
        return at, [(place, "" if topic < 0 else self.topic_name(topic)) for place, topic in seen]

    def _replay_on(
        self, replay_from: Callable[[int], tuple[int, int]], data: Any, starts: Any, stops: Any, first: int
    ) -> int:
        """Call `replay_from` with value numbers, from `first` on, until it is done or can't go on.

        `replay_from` gives a status and the number of the first value that it has not replayed, as this method does.
        """
        at, grown_at = first, first - 1
        while True:
            status, at = replay_from(at)
            if status == GROW:
                assert at > grown_at, "one growth is enough for any record"
                grown_at = at
                self.grow(int(data[starts[at] + 1]))
            elif status == STOPPED and self._clear_elr(data[starts[at] : stops[at]], at):
                at += 1
            else:
                return int(at)

    def _clear_elr(self, value: Any, number: int) -> bool:
        """Replay the value of a ClearElrRecord; False if objects have to replay it, and for other records."""
        changes = changes_clearing_elr(self, value.tobytes())
        if changes is None:
            return False
        count, size = changes.shape
        starts = np.arange(0, count * size, size)
        if count and self._replay_changes(changes.reshape(-1), starts, starts + size, number) < count:
            return False  # objects clear the remaining ones
        self.has_cleared_elr = True
        return True

    def _replay_changes(self, data: Any, starts: Any, stops: Any, number: int) -> int:  # noqa: ARG002 - for journals
        """Replay the values of PartitionChangeRecords that replace value `number`; returns how many were replayed."""
        return self.replay(data, starts, stops, 0, len(starts))[0]

    @property
    def is_empty(self) -> bool:
        """Whether no record of a topic was replayed."""
        counts, state = self.state.counts, self.state
        return not (
            counts[N_TOUCHED] > len(self.packed.patched)
            or counts[N_FRESH]
            or counts[N_TOPICS]
            or self.has_dead_topics
            or self.has_cleared_elr
            or state.touched_info[: counts[N_TOUCHED], 0].any()
            or state.dense_flags.any()
        )

    def apply(self) -> PackedTopics:
        """The base after the change; the same object if nothing differs."""
        return self._restructured() if self._is_structural else self._rewritten()

    @property
    def _is_structural(self) -> bool:
        counts = self.state.counts
        return bool(counts[N_FRESH] or counts[N_TOPICS] or self.has_dead_topics)

    def _rewritten(self) -> PackedTopics:
        base, state = self.packed, self.state
        if not self._differs():
            return base
        common: dict[str, Any] = {"table": base.table, "heap": self.heap(), "directories": self.directory_ids()}
        if len(state.dense_flags):
            self.dense_rows_are_shared = True
            return PackedTopics(rows=state.dense_rows[:], **common)
        count = int(state.counts[N_TOUCHED])
        touched, values = state.touched[:count], state.touched_rows[:count]
        if count * PATCHES_BELOW <= base.partition_count:
            order = np.argsort(touched, kind="stable")
            return PackedTopics(rows=base.rows, patched=touched[order], patches=values[order], **common)
        rows = base.rows.copy()
        rows[touched] = values
        return PackedTopics(rows=rows, **common)

    def _differs(self) -> bool:
        base, state, patched = self.packed, self.state, len(self.packed.patched)
        if len(state.dense_flags):
            return bool(compiled.any_differs(state.dense_rows, base.merged_rows()))
        if compiled.any_differs(state.touched_rows[:patched], base.patches):
            return True
        count = int(state.counts[N_TOUCHED])
        return bool(compiled.any_differs_at(base.rows, state.touched, state.touched_rows, patched, count))

    def _restructured(self) -> PackedTopics:
        base, state, counts = self.packed, self.state, self.state.counts
        fresh, created = int(counts[N_FRESH]), int(counts[N_TOPICS])
        known = base.table.topic_count
        topics = known + created
        ids = self.topic_ids()
        alive = state.alive[:topics].astype(np.bool_)
        common: dict[str, Any] = {"heap": self.heap(), "directories": self.directory_ids()}
        if alive.all() and not counts[N_ODD]:  # then the rows of each new topic are contiguous
            sizes = state.sizes[:topics]
            starts = np.zeros(topics + 1, np.int32)
            np.cumsum(sizes, out=starts[1:])
            in_order = (state.firsts[:created] == starts[known:-1] - base.partition_count)[sizes[known:] > 0]
            if in_order.all():
                if base.partition_count:
                    rows = np.concatenate((self._base_rows(), state.fresh_rows[:fresh]))
                else:
                    rows = self._shared_fresh_rows(fresh)
                names = base.table.names + self.new_names if known else self.names_text
                table = TopicTable(names, ids, starts, base.table.sparse)
                return PackedTopics(table=table, rows=rows, **common)
        return self._sorted_anew(base.table.names + self.new_names, ids, alive, common)

    def _shared_fresh_rows(self, count: int) -> Any:
        """The fresh rows, shared with this change; unused memory is released."""
        if not self.fresh_rows_are_shared:
            self.replace(
                fresh_topics=self.state.fresh_topics[:count],
                fresh_partitions=self.state.fresh_partitions[:count],
                fresh_info=self.state.fresh_info[:count],
            )
            if self.state.fresh_rows.flags.owndata:
                self.state.fresh_rows.resize((count, COLUMNS), refcheck=False)
            self.fresh_rows_are_shared = True
        return self.state.fresh_rows[:count]

    def _base_rows(self) -> Any:
        if len(self.state.dense_flags):
            return self.state.dense_rows
        count = int(self.state.counts[N_TOUCHED])
        rows = self.packed.rows.copy()
        rows[self.state.touched[:count]] = self.state.touched_rows[:count]
        return rows

    def _sorted_anew(self, names: list[str], ids: Any, alive: Any, common: dict[str, Any]) -> PackedTopics:
        table, state = self.packed.table, self.state
        fresh = int(state.counts[N_FRESH])
        topic_of = np.concatenate((table.topic_numbers(), state.fresh_topics[:fresh]))
        partitions = np.concatenate((table.partition_ids(), state.fresh_partitions[:fresh]))
        kept = alive[topic_of]
        order = np.lexsort((partitions, topic_of))
        order = order[kept[order]]
        rows = np.concatenate((self._base_rows(), state.fresh_rows[:fresh]))[order]
        numbers = np.cumsum(alive, dtype=np.int32) - 1
        topic_of, partitions = numbers[topic_of[order]], partitions[order]
        count = int(alive.sum())
        starts = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(topic_of, minlength=count), out=starts[1:])
        odd = topic_of[partitions != np.arange(len(partitions)) - starts[topic_of]]
        odd = odd[np.diff(odd, prepend=-1) > 0]  # np.unique would import numpy.ma
        sparse = {topic: tuple(partitions[starts[topic] : starts[topic + 1]].tolist()) for topic in odd.tolist()}
        names = [name for name, stays in zip(names, alive.tolist(), strict=True) if stays]
        return PackedTopics(table=TopicTable(names, ids[alive], starts, sparse), rows=rows, **common)

    # as objects

    def topic_at(self, place: int) -> int:
        """The number of the topic of a place."""
        state = self.gathered()
        touched = int(state.counts[N_TOUCHED])
        if place >= touched:
            return int(state.fresh_topics[place - touched])
        return int(np.searchsorted(self.base.starts, state.touched[place], side="right")) - 1

    def partition_at(self, place: int) -> tuple[int, int]:
        """The numbers of the topic and the partition at a place."""
        topic = self.topic_at(place)
        state = self.gathered()
        touched = int(state.counts[N_TOUCHED])
        if place >= touched:
            return topic, int(state.fresh_partitions[place - touched])
        return topic, int(state.touched[place]) - int(self.base.starts[topic])

    def info_at(self, place: int) -> tuple[int, int, int]:
        """Flags, number of unclean elections, number of elections from the ELR."""
        state = self.gathered()
        touched = int(state.counts[N_TOUCHED])
        info = state.touched_info[place] if place < touched else state.fresh_info[place - touched]
        flags, unclean, elr = info.tolist()
        return flags, unclean, elr

    def state_at(self, place: int, heap: Any, directories: tuple[Uuid, ...]) -> PartitionRegistration:
        """The state of the partition at a place."""
        state = self.gathered()
        touched = int(state.counts[N_TOUCHED])
        row = state.touched_rows[place] if place < touched else state.fresh_rows[place - touched]
        return registration_of(tuple(row.tolist()), heap, directories)

    def changed_places(self) -> list[int]:
        """The places of the partitions that records changed, of existing topics."""
        state = self.gathered()
        touched = int(state.counts[N_TOUCHED])
        named = np.flatnonzero(state.touched_info[:touched, 0] & TOUCHED).tolist()
        places = [*named, *range(touched, touched + int(state.counts[N_FRESH]))]
        alive = state.alive
        return [place for place in places if alive[self.topic_at(place)]]

    def local_places(self, broker: int) -> Mapping[str, Any]:
        """The places of the broker's local changes (int32 each), by the fields of `LocalReplicaChanges`.

        `deleted_rows` are rows of the base, of deleted topics.
        """
        state = self.gathered()
        places = int(state.counts[N_TOUCHED] + state.counts[N_FRESH])
        found, counts = np.empty((5, places), np.int32), np.zeros(5, np.int64)
        compiled.local_changes(
            compiled.Base(*self.base), compiled.State(*state), self.packed.patches, broker, found, counts
        )
        names = ("deletes", "leaders", "elected_leaders", "followers", "directory_ids")
        result = {name: found[i, : counts[i]].copy() for i, name in enumerate(names)}
        result["deleted_rows"] = self._hosted_by_deleted(broker)
        return result

    def _hosted_by_deleted(self, broker: int) -> Any:
        packed = self.packed
        dead = self.state.alive[: packed.table.topic_count] == 0
        if not dead.any():
            return np.empty(0, np.int32)
        rows = rows_hosting(packed, broker)
        rows = rows[dead[np.searchsorted(self.base.starts, rows, side="right") - 1]]
        return np.array([row for row in rows.tolist() if broker in packed.registration(row).replicas], np.int32)
