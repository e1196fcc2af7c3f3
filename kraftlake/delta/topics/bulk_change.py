"""The change of a packed image by many records, replayed as bytes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Any, Final

import attrs

from kraftlake.delta.faults import taken_name
from kraftlake.delta.topics.bulk_topics import BulkTopics
from kraftlake.delta.topics.changed_rows import ChangedRows
from kraftlake.image.topics.buffers import grown, of_bytes, room, zeros
from kraftlake.image.topics.packed_topics import EMPTY, PATCHES_BELOW, PackedTopics
from kraftlake.image.topics.topic_table import TopicTable
from kraftlake.kernels import compiled, record_types
from kraftlake.kernels.partition_row import COLUMNS
from kraftlake.kernels.replay import change_state
from kraftlake.kernels.replay.journal import Journal
from kraftlake.records.metadata_records import METADATA_RECORDS, ClearElrRecord, TopicRecord
from kraftlake.records.schema import SPEC, Message
from kraftlake.records.serde import AnyMessage, UnknownRecord, decode_value, encode_value, read_frame
from kraftlake.runtime.errors import CorruptDataError

if TYPE_CHECKING:
    from kraftlake.delta.topics.row_versions import RowVersions

TOPIC_KINDS: Final = (
    record_types.TOPIC,
    record_types.PARTITION,
    record_types.CHANGE,
    record_types.REMOVE,
    record_types.CLEAR_ELR,
)
"""The api keys of the records that change topics and partitions."""
_LAST_TAGS: Final = {record_types.PARTITION: 2, record_types.CHANGE: 8}
"""The last tagged field that rows have a place for, by api key."""
_MARKS: Final = range(record_types.BEGIN_TRANSACTION, record_types.ABORT_TRANSACTION + 1)
_FIRST = array("q", [0])
_GROWTHS = 64
"""More than any record needs."""
_SHARED_FROM = 1 << 20
"""Number of bytes from which on an image shares the rows of a change."""


class BulkChange(BulkTopics):
    """The effect of records on `base`, as rows.

    Touched rows are changed rows of the base; fresh rows are those of new partitions. A *place* is a number that counts
    the touched rows, then the fresh ones. `of_log` is that of TopicsDelta. `of_shard`: a ClearElrRecord may name a
    topic that is not here.
    """

    def __init__(self, base: PackedTopics, *, of_log: bool = False, of_shard: bool = False) -> None:
        super().__init__(base)
        self.of_log = of_log
        self._of_shard = of_shard
        self._journal = NO_JOURNAL
        self._others: list[Any] = []
        """The replayed values that `compiled.replay` passes on: int64[n, 2] each."""
        self._room = zeros("q", 1, 2)
        """The buffer that `compiled.replay` writes them to."""
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
        passed_on = [other for others in self._others for other in others.tolist()]
        return at, [(place, None if topic < 0 else self.topic_name(topic)) for place, topic in passed_on]

    def replay_values(self, values: Sequence[bytes]) -> tuple[int, list[tuple[int, str | None]]]:
        """Replay values; as `replay`."""
        ends = memoryview(array("q", accumulate(map(len, values), initial=0)))
        return self.replay(b"".join(values), ends[:-1], ends[1:], 0, len(values))

    def replay_value(self, value: bytes) -> bool:
        """Replay the value of a record that is not a RemoveTopicRecord; False, with no effect, if it can't be done."""
        self.unshare()
        return self._replay_on(value, _FIRST, array("q", [len(value)]), 0, 1) == 1

    def begin_all_anew(self) -> None:
        """Make it the change in which each topic of the base is created, with the partitions that it has."""
        self._touch_all()
        topics = self.packed.table.topic_count
        flags = of_bytes("B", bytearray([change_state.TOUCHED]) * self.packed.partition_count)
        self.replace(alive=of_bytes("B", bytearray([change_state.ANEW]) * topics), touched_flags=flags)

    def replay_journaled(self, data: Any, starts: Any, stops: Any) -> tuple[int, RowVersions]:
        """Replays, as `replay`, values of topics alone; returns the versions of partitions that they made, too."""
        from kraftlake.delta.topics.row_versions import row_versions

        self.unshare()
        self.make_room(data, starts, stops, 0, len(starts))
        self._others, self._journal = [], _room_for_versions(max(1, len(starts)))
        self.state.counts[change_state.N_VERSIONS] = 0
        at = self._replay_on(data, starts, stops, 0, len(starts))
        versions = [column[: self.count(change_state.N_VERSIONS)] for column in self._journal]
        self._journal = NO_JOURNAL
        return at, row_versions(versions, self._others, lambda places: data[starts[places] + 1] == record_types.REMOVE)

    def _replay_on(self, data: Any, starts: Any, stops: Any, first: int, last: int) -> int:
        """Replay values from `first` on until it is done or can't go on; the first that was not replayed."""
        if len(self._room) < last - first:
            self._room = room("q", last - first, 2)
        others = self._room
        at, growths = first, 0
        while True:
            before, counts = at, self.state.counts
            counts[change_state.N_OTHERS] = 0
            journal = _NO_JOURNAL if self._journal is NO_JOURNAL else compiled.Journal(*self._journal)
            status, at = compiled.replay(data, starts, stops, at, last, *self.buffers, journal, others)
            if passed_on := counts[change_state.N_OTHERS]:
                self._others.append(grown(others[:passed_on], passed_on))
            if status == change_state.GROW:
                growths = 1 if at > before else growths + 1
                assert growths < _GROWTHS, "few growths are enough for any record"
                self._grow_for(int(data[starts[at] + 1]), int(stops[at] - starts[at]))
            elif (
                status == change_state.STOPPED
                and not counts[change_state.IS_CHECKED]
                and self._replay_unusual(data, starts, stops, at)
            ):
                at += 1
            else:
                return int(at)

    def _grow_for(self, api_key: int, size: int) -> None:
        self.grow(api_key, size)
        counts, journal = self.state.counts, self._journal
        if len(journal.records) and max(
            counts[change_state.VERSIONS_NEEDED], counts[change_state.N_VERSIONS] + 1
        ) > len(journal.records):
            size = max(counts[change_state.VERSIONS_NEEDED], 2 * len(journal.records))
            self._journal = Journal(*(grown(column, size) for column in journal))

    def _replay_unusual(self, data: Any, starts: Any, stops: Any, at: int) -> bool:
        """Replay a value that is right, but not written or not in place as usual; False for any other."""
        content = bytes(data[starts[at] : stops[at]])
        try:
            api_key, _ = read_frame(content)
            framed = decode_value(content) if api_key in METADATA_RECORDS else None
        except CorruptDataError:
            return False
        if framed is None or (isinstance(framed.message, UnknownRecord) and api_key not in TOPIC_KINDS):
            self._others.append(of_bytes("q", array("q", [at, -1]).tobytes(), 2))
            return True
        message = framed.message
        if isinstance(message, UnknownRecord) or message.API_KEY in _MARKS:
            return False
        message = _held_by_rows(message)
        value = encode_value(message, framed.version)
        if self._replay_checked(value, at) or self._is_of_another_shard(message):
            return True
        holder = -1 if self.of_log or not isinstance(message, TopicRecord) else self.topic_number(message.name)
        if holder < 0 or holder not in self._untouched():
            return False
        self.state.alive[holder] = change_state.GONE  # its name is free for a moment
        taken = self._replay_checked(value, at)
        self.state.alive[holder] = change_state.ALIVE
        if taken:
            self.state.counts[change_state.HAS_TAKEN_NAMES] = 1
            self.taken_names.append((message.name, holder))  # type: ignore[attr-defined]
        return taken

    def _replay_checked(self, value: Any, number: int) -> bool:
        """Replay a value that the object codec has written, for value `number`; whether that was possible."""
        versions, others = self.count(change_state.N_VERSIONS), len(self._others)
        self.state.counts[change_state.IS_CHECKED] = 1
        try:
            done = self._replay_on(value, array("q", [0]), array("q", [len(value)]), 0, 1)
        finally:
            self.state.counts[change_state.IS_CHECKED] = 0
        for version in range(versions, self.count(change_state.N_VERSIONS)):
            self._journal.records[version] = number
        for other in self._others[others:]:
            for passed_on in range(len(other)):
                other[passed_on, 0] = number
        return done == 1

    def _is_of_another_shard(self, message: AnyMessage) -> bool:
        return self._of_shard and isinstance(message, ClearElrRecord) and self.topic_number(message.topic_name) < 0

    def _untouched(self) -> set[int]:
        """The topics of the base that no record has changed or named."""
        self._changed = None
        changed = set(self.changed_rows().columns.topics)
        lives = enumerate(self.lives[: self.packed.table.topic_count])
        return {topic for topic, life in lives if life == change_state.ALIVE and topic not in changed}

    def finish_snapshot(self) -> None:
        """Delete the topics of the base that no record has named."""
        for topic in self._untouched():
            self.state.alive[topic] = change_state.GONE
        self._changed = None

    def refuse_taken_names(self) -> None:
        """Raise ReplayError where two topics have one name."""
        for name, topic in self.taken_names:
            if self.state.alive[topic]:
                raise taken_name(name, self.topic_id(topic))

    @property
    def is_empty(self) -> bool:
        """Whether no record of a topic was replayed."""
        has_cleared = self.state.counts[change_state.HAS_CLEARED_ELR]
        return not (self._is_structural or has_cleared or compiled.most_changed(*self.buffers))

    def apply(self) -> PackedTopics:
        """The base after the change; the same object if nothing differs. ReplayError if two topics share a name."""
        self.refuse_taken_names()
        return self._restructured() if self._is_structural else self._rewritten()

    @property
    def _is_structural(self) -> bool:
        counts = self.state.counts
        return bool(counts[change_state.N_FRESH] or counts[change_state.N_TOPICS] or not self.all_alive)

    def _rewritten(self) -> PackedTopics:
        base, state = self.packed, self.state
        if not self._differs():
            return base
        count = self.count(change_state.N_TOUCHED)
        if not len(state.slots):
            self.touched_rows_are_shared = True
            return self._packed(base.table, state.touched_rows)
        if count * PATCHES_BELOW <= base.partition_count:
            patched, patches = room("i", count), room("i", count, COLUMNS)
            compiled.sort_touched(self.buffers[1], patched, patches)
            return self._packed(base.table, base.cells, patched=patched, patches=patches)
        rows = grown(base.cells, base.partition_count)
        compiled.spread(self.buffers[1], rows)
        return self._packed(base.table, rows)

    def _differs(self) -> bool:
        base, state, patched = self.packed, self.state, len(self.packed.patched)
        if compiled.any_differs(state.touched_rows[:patched], base.patches, *self.buffers):
            return True
        return compiled.any_touched_differs(patched, *self.buffers)

    def _restructured(self) -> PackedTopics:
        base, total = self.packed, self.topic_total
        if not any(bytes(self.lives)):
            return EMPTY
        starts = room("i", total + 1)
        is_plain = (
            not base.partition_count and self.all_alive and self.count(change_state.N_ODD) == self._sparse_partitions
        )
        if is_plain and compiled.lie_in_order(*self.buffers, starts):
            return self._packed(TopicTable(self.names, self.topic_ids(), starts, base.table.sparse), self._fresh_rows())
        sizes, ends, is_odd = zeros("i", total), room("i", total), zeros("B", total)
        compiled.count_rows(*self.buffers, sizes)
        starts = memoryview(array("i", accumulate(sizes, initial=0)))
        partitions, places = room("i", starts[-1]), room("q", starts[-1])
        compiled.lay_out(*self.buffers, starts, partitions, places, ends, is_odd)
        rows = room("i", starts[-1], COLUMNS)
        compiled.rows_at(places, *self.buffers, rows)
        sparse = {topic: tuple(partitions[starts[topic] : ends[topic]]) for topic in compress(range(total), is_odd)}
        names, ids, kept = self.names, self.topic_ids(), [topic for topic in range(total) if self.state.alive[topic]]
        if len(kept) < total:
            known = base.table.names + self.new_names
            names, ids = [known[topic] for topic in kept], b"".join([ids[16 * n : 16 * n + 16] for n in kept])
            starts = memoryview(array("i", [*(starts[topic] for topic in kept), starts[-1]]))
            sparse = {number: sparse[topic] for number, topic in enumerate(kept) if topic in sparse}
        table = TopicTable(names, ids, starts, sparse)
        if kept == [*range(base.table.topic_count)] and starts == base.table.bounds and sparse == base.table.sparse:
            if not compiled.any_differs(rows, base.merged().cells, *self.buffers):
                return base  # a snapshot has brought what was there
            table = base.table
        return self._packed(table, rows)

    def _packed(self, table: TopicTable, rows: Any, **patches: Any) -> PackedTopics:
        return PackedTopics(table=table, rows=rows, heap=self.heap(), directories=self.directory_ids(), **patches)

    def _fresh_rows(self) -> Any:
        """The fresh rows: shared with this change if they are many."""
        rows = self.state.fresh_rows[: self.count(change_state.N_FRESH)]
        self.fresh_rows_are_shared = rows.nbytes >= _SHARED_FROM
        return rows if self.fresh_rows_are_shared else grown(rows, len(rows))

    def changed_rows(self) -> ChangedRows:
        """The partitions that the records have changed, and those of removed topics; the same until the next record."""
        if self._changed is None:
            self._changed = ChangedRows(self)
        rows: ChangedRows = self._changed
        return rows


def _room_for_versions(size: int) -> Journal:
    """A journal with room for a number of versions."""
    rows = (room("i", size, COLUMNS), room("i", size, COLUMNS))
    return Journal(room("q", size), room("q", size), *rows, room("B", size))


NO_JOURNAL: Final = _room_for_versions(0)
_NO_JOURNAL: Final = compiled.Journal(*NO_JOURNAL)


def _held_by_rows(message: Message) -> Message:
    """A record without the tagged fields that rows have no place for."""
    others = {
        field.name: field.default
        for field in attrs.fields(type(message))
        if SPEC in field.metadata and (field.metadata[SPEC].tag or 0) > _LAST_TAGS.get(message.API_KEY, 0)
    }
    return attrs.evolve(message, unknown_tagged_fields=(), **others)
