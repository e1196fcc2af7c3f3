"""The change of a packed image by many records, replayed as bytes. Imports numpy."""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np

from kraftlake.delta.topics.bulk_topics import BulkTopics
from kraftlake.delta.topics.object_change import taken_name
from kraftlake.delta.topics.row_versions import NO_JOURNAL, RowVersions, room_for_versions
from kraftlake.image.topics.packed_topics import PATCHES_BELOW, PackedTopics
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.partition_rows import COLUMNS, SHAPE, registration_of
from kraftlake.image.topics.topic_table import TopicTable, sorted_table
from kraftlake.kernels import compiled
from kraftlake.kernels.record_types import (
    ABORT_TRANSACTION,
    BEGIN_TRANSACTION,
    CHANGE,
    CLEAR_ELR,
    PARTITION,
    REMOVE,
    TOPIC,
)
from kraftlake.kernels.replay.change_state import (
    ABSENT,
    ALIVE,
    GONE,
    GROW,
    HAS_CLEARED_ELR,
    HAS_TAKEN_NAMES,
    IS_CHECKED,
    N_FRESH,
    N_ODD,
    N_OTHERS,
    N_TOPICS,
    N_TOUCHED,
    N_VERSIONS,
    STOPPED,
    TOUCHED,
    VERSIONS_NEEDED,
)
from kraftlake.records.metadata_records import ClearElrRecord, TopicRecord
from kraftlake.records.schema import SPEC, Message
from kraftlake.records.serde import AnyMessage, UnknownRecord, decode_value, encode_value
from kraftlake.records.uuid import Uuid
from kraftlake.runtime import CorruptDataError

TOPIC_KINDS: Final = (TOPIC, PARTITION, CHANGE, REMOVE, CLEAR_ELR)
"""The api keys of the records that change topics and partitions."""
_LAST_TAGS: Final = {PARTITION: 2, CHANGE: 8}
"""The last tagged field that rows have a place for, by api key."""
_MARKS: Final = range(BEGIN_TRANSACTION, ABORT_TRANSACTION + 1)
_GROWTHS = 64
"""More than any record needs."""


class BulkChange(BulkTopics):
    """The effect of records on `base`, as rows.

    Touched rows are changed rows of the base; fresh rows are those of new partitions. A *place* is a number that counts
    the touched rows, then the fresh ones. Source of the semantics: `ObjectChange` and `TopicDelta`, also of `of_log`.
    `of_shard`: a ClearElrRecord may name a topic that is not here.
    """

    def __init__(self, base: PackedTopics, *, of_log: bool = False, of_shard: bool = False) -> None:
        super().__init__(base)
        self.of_log = of_log
        self._of_shard = of_shard
        self._journal = NO_JOURNAL
        self._others: list[Any] = []
        """Of the values that are replayed what `compiled.replay` passes on: int64[n, 2] each."""
        self.taken_names: list[tuple[str, int]] = []
        """The names that a snapshot gave to a new topic while one of the base had them, with its number."""

    def replay(
        self, data: Any, starts: Any, stops: Any, first: int, last: int, *, following: int = 0
    ) -> tuple[int, list[tuple[int, str | None]]]:
        """Replay the record values data[starts[i]:stops[i]] (uint8; int64), i in [first, last), as far as possible.

        Returns the number of the first value that was not replayed (`last` if all were), which is a mark of a
        transaction or contradicts the state; and the values before it that other parts have to replay: their numbers,
        with None, or with the topic's name for a RemoveTopicRecord. Memory is reserved for about `following` more
        records.
        """
        self.unshare()
        self.make_room(data, starts, stops, first, last, following=following)
        self._others, self._journal = [], NO_JOURNAL
        at = self._replay_on(data, starts, stops, first, last)
        return at, [
            (place, None if topic < 0 else self.topic_name(topic)) for place, topic in self._passed_on().tolist()
        ]

    def replay_journaled(self, data: Any, starts: Any, stops: Any) -> tuple[int, RowVersions]:
        """As `replay`, of values that are all of topics; returns the versions of partitions that they made, too."""
        self.unshare()
        self.make_room(data, starts, stops, 0, len(starts))
        self._others, self._journal = [], room_for_versions(max(1, len(starts)))
        self.state.counts[N_VERSIONS] = 0
        at = self._replay_on(data, starts, stops, 0, len(starts))
        made = self.state.counts[N_VERSIONS]
        columns = {name: column[:made] for name, column in self._journal._asdict().items()}
        self._journal = NO_JOURNAL
        topics = self._passed_on()
        topics = topics[topics[:, 1] >= 0]
        is_removed = data[starts[topics[:, 0]] + 1] == REMOVE
        return at, RowVersions(**columns, created=topics[~is_removed], removed=topics[is_removed])

    def _replay_on(self, data: Any, starts: Any, stops: Any, first: int, last: int) -> int:
        """Replay values from `first` on until it is done or can't go on; the first that was not replayed."""
        others = np.empty((last - first, 2), np.int64)
        at, grown = first, 0
        while True:
            before, counts = at, self.state.counts
            counts[N_OTHERS] = 0
            journal = compiled.Journal(*self._journal)
            status, at = compiled.replay(data, starts, stops, at, last, *self.buffers, journal, others)
            if counts[N_OTHERS]:
                self._others.append(others[: counts[N_OTHERS]].copy())
            if status == GROW:
                grown = 1 if at > before else grown + 1
                assert grown < _GROWTHS, "few growths are enough for any record"
                self._grow_for(int(data[starts[at] + 1]), int(stops[at] - starts[at]))
            elif status == STOPPED and not counts[IS_CHECKED] and self._replay_unusual(data, starts, stops, at):
                at += 1
            else:
                return int(at)

    def _passed_on(self) -> Any:
        return np.concatenate(self._others) if self._others else np.empty((0, 2), np.int64)

    def _grow_for(self, api_key: int, size: int) -> None:
        self.grow(api_key, size)
        counts, journal = self.state.counts, self._journal
        if len(journal.records) and max(counts[VERSIONS_NEEDED], counts[N_VERSIONS] + 1) > len(journal.records):
            self._journal = room_for_versions(max(int(counts[VERSIONS_NEEDED]), 2 * len(journal.records)), journal)

    def _replay_unusual(self, data: Any, starts: Any, stops: Any, at: int) -> bool:
        """Replay a value that is right, but not written or not in place as usual; False for any other."""
        try:
            framed = decode_value(data[starts[at] : stops[at]].tobytes())
        except CorruptDataError:
            return False
        message = framed.message
        if isinstance(message, UnknownRecord) and message.api_key not in TOPIC_KINDS:
            self._others.append(np.array([[at, -1]], np.int64))
            return True
        if isinstance(message, UnknownRecord) or message.API_KEY in _MARKS:
            return False
        message = _held_by_rows(message)
        value = np.frombuffer(encode_value(message, framed.version), np.uint8)
        if self._replay_checked(value, at) or self._is_of_another_shard(message):
            return True
        holder = -1 if self.of_log or not isinstance(message, TopicRecord) else self.topic_number(message.name)
        if not 0 <= holder < self.packed.table.topic_count or self._has_changed(holder):
            return False
        self.state.alive[holder] = GONE  # its name is free for a moment
        taken = self._replay_checked(value, at)
        self.state.alive[holder] = ALIVE
        if taken:
            self.state.counts[HAS_TAKEN_NAMES] = 1
            self.taken_names.append((message.name, holder))  # type: ignore[attr-defined]
        return taken

    def _replay_checked(self, value: Any, number: int) -> bool:
        """Replay a value that the object codec has written, for value `number`; whether that was possible."""
        versions, others = int(self.state.counts[N_VERSIONS]), len(self._others)
        self.state.counts[IS_CHECKED] = 1
        try:
            done = self._replay_on(value, np.zeros(1, np.int64), np.full(1, len(value), np.int64), 0, 1)
        finally:
            self.state.counts[IS_CHECKED] = 0
        self._journal.records[versions : self.state.counts[N_VERSIONS]] = number
        for other in self._others[others:]:
            other[:, 0] = number
        return done == 1

    def _is_of_another_shard(self, message: AnyMessage) -> bool:
        return self._of_shard and isinstance(message, ClearElrRecord) and self.topic_number(message.topic_name) < 0

    def _has_changed(self, topic: int) -> bool:
        """Whether a record has changed a topic of the base."""
        return self.state.alive[topic] != ALIVE or topic in {self.topic_at(place) for place in self.changed_places()}

    def finish_snapshot(self) -> None:
        """Delete the topics of the base that no record has named."""
        named = np.zeros(self.topic_total, np.bool_)
        named[[self.topic_at(place) for place in self.changed_places()]] = True
        named |= self.lives != ALIVE
        self.state.alive[: self.packed.table.topic_count][~named[: self.packed.table.topic_count]] = GONE

    def refuse_taken_names(self) -> None:
        """Raise ReplayError where two topics have one name."""
        for name, topic in self.taken_names:
            if self.state.alive[topic]:
                raise taken_name(name, self.topic_id(topic))

    @property
    def is_empty(self) -> bool:
        """Whether no record of a topic was replayed."""
        counts, state = self.state.counts, self.state
        return not (
            counts[N_TOUCHED] > len(self.packed.patched)
            or self._is_structural
            or counts[HAS_CLEARED_ELR]
            or state.touched_info[: counts[N_TOUCHED], 0].any()
            or state.dense_flags.any()
        )

    def apply(self) -> PackedTopics:
        """The base after the change; the same object if nothing differs. ReplayError if two topics share a name."""
        self.refuse_taken_names()
        return self._restructured() if self._is_structural else self._rewritten()

    @property
    def _is_structural(self) -> bool:
        counts = self.state.counts
        return bool(counts[N_FRESH] or counts[N_TOPICS] or (self.lives != ALIVE).any())

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
        base, state = self.packed, self.state
        fresh, created = self.count(N_FRESH), self.count(N_TOPICS)
        known, topics = base.table.topic_count, self.topic_total
        ids, lives = self.topic_ids(), self.lives
        common: dict[str, Any] = {"heap": self.heap(), "directories": self.directory_ids()}
        if (lives == ALIVE).all() and (
            self.count(N_ODD) == self._sparse_partitions
        ):  # then each new topic has its rows
            sizes = state.sizes[:topics]  # side by side
            starts = np.zeros(topics + 1, np.int32)
            np.cumsum(sizes, out=starts[1:])
            in_order = (state.firsts[:created] == starts[known:-1] - base.partition_count)[sizes[known:] > 0]
            if in_order.all():
                if base.partition_count:
                    rows = np.concatenate((self._base_rows(), state.fresh_rows[:fresh]))
                else:
                    rows = self._shared_fresh_rows(fresh)
                return PackedTopics(table=TopicTable(self.names, ids, starts, base.table.sparse), rows=rows, **common)
        return self._sorted_anew(ids, lives, common)

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

    def _sorted_anew(self, ids: Any, lives: Any, common: dict[str, Any]) -> PackedTopics:
        table, state = self.packed.table, self.state
        fresh = self.count(N_FRESH)
        topic_of = np.concatenate((table.topic_numbers(), state.fresh_topics[:fresh]))
        partitions = np.concatenate((table.partition_ids(), state.fresh_partitions[:fresh]))
        rows = np.concatenate((self._base_rows(), state.fresh_rows[:fresh]))
        alive = lives != GONE
        kept = alive[topic_of] & (rows[:, SHAPE] != ABSENT)
        order = np.lexsort((partitions, topic_of))
        order = order[kept[order]]
        numbers = np.cumsum(alive, dtype=np.int32) - 1
        known = self.packed.table.names + self.new_names
        names = [name for name, stays in zip(known, alive.tolist(), strict=True) if stays]
        table = sorted_table(names, ids[alive], numbers[topic_of[order]], partitions[order])
        rows, base = rows[order], self.packed
        has_same_topics = not self.count(N_TOPICS) and bool(alive.all())
        has_same_places = np.array_equal(table.starts, base.table.starts) and table.sparse == base.table.sparse
        if has_same_topics and has_same_places and not compiled.any_differs(rows, base.merged_rows()):
            return base  # a snapshot has brought what was there
        return PackedTopics(table=table, rows=rows, **common)

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
        number = int(state.touched[place]) - int(self.base.starts[topic])
        ids = self.packed.table.sparse.get(topic)
        return topic, number if ids is None else ids[number]

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
        rows = (state.touched_rows, state.fresh_rows)
        return [
            place
            for place in places
            if state.alive[self.topic_at(place)]
            and rows[place >= touched][place - touched * (place >= touched), SHAPE] != ABSENT
        ]


def _held_by_rows(message: Message) -> Message:
    """A record without the tagged fields that rows have no place for."""
    others = {
        field.name: field.default
        for field in attrs.fields(type(message))
        if SPEC in field.metadata and (field.metadata[SPEC].tag or 0) > _LAST_TAGS.get(message.API_KEY, 0)
    }
    return attrs.evolve(message, unknown_tagged_fields=(), **others)
