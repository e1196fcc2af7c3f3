"""The states of topics, brokers, configs, ACLs, quotas, features and SCRAM users, folded record by record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import type_name
from kraftlake.records.serde import AnyMessage, decode_value
from kraftlake.runtime.errors import CorruptDataError, ReplayError
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.history.entity_tables import SMALL_TABLES, TOPICS, Key, SmallTable

Since = Callable[[SmallTable, tuple[Any, ...]], tuple[int, int] | None]
"""Since which offset and time (epoch ms, -1 for none) something is what it is, by table and the values of its key."""


@attrs.frozen
class _Open:
    row: tuple[Any, ...]
    state: Any
    since: int
    since_time: int


class EntityHistory:
    """The open states of the tables; `take` moves them on and gives those that ended.

    As `PartitionStates`: what comes out depends on the records alone, and those that take effect at one offset belong
    into one piece.
    """

    def __init__(
        self,
        tables: Sequence[SmallTable] = SMALL_TABLES,
        image: MetadataImage = MetadataImage.EMPTY,
        since: Since = lambda _, __: None,
    ) -> None:
        """Begin with what an image has, each thing since an offset and time; its own where nothing is known."""
        self._image = attrs.evolve(image, topics=TopicsImage.EMPTY)
        self._topics = {topic_id: topic.name for topic_id, topic in image.topics.topics_by_id().items()}
        self._of_kind: dict[int, list[SmallTable]] = {}
        self._open: dict[str, dict[Key, _Open]] = {}
        for table in tables:
            self.add(table, since)

    def add(self, table: SmallTable, since: Since) -> None:
        """Add a table, before anything is taken; `since` as where this begins."""
        for kind in table.kinds:
            self._of_kind.setdefault(kind, []).append(table)
        provenance = self._image.provenance
        open_ = self._open[table.name] = {}
        for key in [*self._topics] if table is TOPICS else table.keys(self._image):
            state = self._look(table, key)
            row = table.row(key, state)
            known = since(table, table.key_of(row)) or (provenance.offset, provenance.timestamp)
            open_[key] = _Open(row, state, *known)

    def take(self, records: EffectiveRecords) -> dict[str, pa.Table]:
        """Replay records that follow those before; the states that ended, by the name of their table where there are.

        Records that none of the tables is made of are left out. Raises ReplayError or CorruptDataError naming the
        offset.
        """
        records = records.of_kinds(self._of_kind)
        ended: dict[SmallTable, list[tuple[Any, ...]]] = {}
        effective, times, kinds = records.effective.tolist(), records.times.tolist(), records.kinds.tolist()
        start = 0
        while start < len(effective):
            stop = start + 1
            while stop < len(effective) and effective[stop] == effective[start]:
                stop += 1
            messages = [(*self._decode(records, index), self._of_kind[kinds[index]]) for index in range(start, stop)]
            self._step(messages, effective[start], times[start], ended)
            start = stop
        return {table.name: _table(table, rows) for table, rows in ended.items()}

    def open_table(self, table: SmallTable) -> pa.Table:
        """The states of a table that go on."""
        return _table(
            table, [(*o.row, o.since, None, _micros(o.since_time), None) for o in self._open[table.name].values()]
        )

    def open_count(self, table: SmallTable) -> int:
        """How many states of a table go on."""
        return len(self._open[table.name])

    def _decode(self, records: EffectiveRecords, index: int) -> tuple[int, AnyMessage]:
        offset = int(records.offsets[index])
        try:
            return offset, decode_value(records.value(index)).message
        except CorruptDataError as error:
            raise CorruptDataError(f"The record at offset {offset} can't be decoded: {error}") from error

    def _step(
        self,
        messages: Sequence[tuple[int, AnyMessage, Sequence[SmallTable]]],
        effective: int,
        time: int,
        ended: dict[SmallTable, list[tuple[Any, ...]]],
    ) -> None:
        """Records that take effect at one offset, with the tables that they are about."""
        touched: dict[SmallTable, dict[Key, None]] = {}
        delta: MetadataDelta | None = None
        for offset, message, tables in messages:
            removed = None
            if isinstance(message, r.TopicRecord):  # most of what there is, and nothing of it is in the image
                self._topics[message.topic_id] = message.name
            else:
                if delta is None:
                    delta = MetadataDelta(self._image)
                removed = self._replay(delta, offset, message)
            for table in tables:
                keys = table.touched(message) or ()
                if removed is not None:
                    keys = (*keys, *table.removed_topic(self._image, removed))
                if keys:
                    touched.setdefault(table, {}).update(dict.fromkeys(keys))
        if delta is not None:
            self._image = delta.apply(self._image.provenance)
        for table, keys in touched.items():
            for key in keys:
                self._change(table, key, effective, time, ended)

    def _replay(self, delta: MetadataDelta, offset: int, message: AnyMessage) -> str | None:
        """Replay a record; gives the name of the topic that it removes."""
        match message:
            case r.RemoveTopicRecord():
                name = self._topics.pop(message.topic_id, None)
                if name is None:
                    raise ReplayError(
                        f"Offset {offset}, {type_name(type(message))}: the topic with id {message.topic_id} does not "
                        "exist.",
                        offset=offset,
                    )
                delta.get_or_create_configs_delta().replay_remove_topic(name)
                return name
            case _:
                delta.replay(message, offset)
        return None

    def _look(self, table: SmallTable, key: Key) -> Any:
        return self._topics.get(key) if table is TOPICS else table.look(self._image, key)

    def _change(
        self, table: SmallTable, key: Key, offset: int, time: int, ended: dict[SmallTable, list[tuple[Any, ...]]]
    ) -> None:
        open_ = self._open[table.name]
        before, state = open_.get(key), self._look(table, key)
        if before is not None:
            if state is not None and before.state == state:
                return
            del open_[key]
            if before.since != offset:
                row = (*before.row, before.since, offset, _micros(before.since_time), _micros(time))
                ended.setdefault(table, []).append(row)
        if state is not None:
            open_[key] = _Open(table.row(key, state), state, offset, time)


def _micros(time_ms: int) -> int | None:
    return None if time_ms < 0 else time_ms * 1000


def _table(table: SmallTable, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    schema = table.schema
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([pa.array(values, f.type) for values, f in zip(columns, schema, strict=True)], schema=schema)
