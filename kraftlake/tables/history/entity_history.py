"""The states of topics, brokers, configs, ACLs, quotas, features and SCRAM users, folded record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import attrs
import pyarrow as pa

from kraftlake.delta import MetadataDelta
from kraftlake.image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import type_name
from kraftlake.records.serde import AnyMessage, decode_value
from kraftlake.replay.log.effective_records import EffectiveRecords
from kraftlake.runtime.errors import CorruptDataError, ReplayError
from kraftlake.tables.history.entity_tables import SMALL_TABLES, TOPICS, Key, SmallTable
from kraftlake.tables.row_buffer import table_of_rows

Row = tuple[Any, ...]
"""A value for each column of a table."""

Since = Callable[[SmallTable, tuple[Any, ...]], tuple[int, int] | None]
"""The offset and time (epoch ms, -1 for none) at which the state of an entity began, by table and values of its key."""


@attrs.frozen
class _Open:
    row: Row
    state: Any
    since: int
    since_time: int


class EntityHistory:
    """The open states of the tables; `take` replays records and returns the states that ended.

    The result depends on the records alone: states that end at one offset are in the order of the records that end
    them, configs of a removed topic by name; open states are in the order of the records that began them, after those
    of the image by key. Records that take effect at one offset come in one call of `take`.
    """

    def __init__(
        self,
        tables: Sequence[SmallTable] = SMALL_TABLES,
        image: MetadataImage = MetadataImage.EMPTY,
        since: Since = lambda _, __: None,
    ) -> None:
        """Begin with the entities of an image, each since an offset and time: by default the image's own."""
        self._image = attrs.evolve(image, topics=TopicsImage.EMPTY)
        self._topics = {topic_id: topic.name for topic_id, topic in image.topics.topics_by_id().items()}
        self._of_kind: dict[int, list[SmallTable]] = {}
        self._open: dict[str, dict[Key, _Open]] = {}
        for table in tables:
            self.add(table, since)

    def add(self, table: SmallTable, since: Since) -> None:
        """Add a table, before anything is taken; `since` as in the constructor."""
        for kind in table.kinds:
            self._of_kind.setdefault(kind, []).append(table)
        provenance = self._image.provenance
        open_ = self._open[table.name] = {}
        rows = []
        for key in self._topics if table is TOPICS else table.keys(self._image):
            state = self._state(table, key)
            row = table.row(key, state)
            rows.append((table.key_of(row), row, key, state))
        for values, row, key, state in sorted(rows, key=itemgetter(0)):
            open_[key] = _Open(row, state, *(since(table, values) or (provenance.offset, provenance.timestamp)))

    def take(self, records: EffectiveRecords) -> dict[str, list[Row]]:
        """Replay records that follow those before; returns the rows of the states that ended, by the table's name.

        Records that none of the tables is made of are left out. Raises ReplayError or CorruptDataError naming the
        offset.
        """
        records = records.of_kinds(self._of_kind)
        ended: dict[str, list[Row]] = {}
        effective, times, kinds = records.effective.tolist(), records.times.tolist(), records.kinds.tolist()
        for offset, group in groupby(range(len(effective)), effective.__getitem__):
            numbers = [*group]
            messages = [(*self._decode(records, number), self._of_kind[kinds[number]]) for number in numbers]
            self._step(messages, offset, times[numbers[0]], ended)
        return ended

    def open_table(self, table: SmallTable) -> pa.Table:
        """The states of a table that have not ended."""
        return table_of_rows(
            [(*o.row, o.since, None, _micros(o.since_time), None) for o in self._open[table.name].values()],
            table.schema,
        )

    def open_count(self, table: SmallTable) -> int:
        """The number of states of a table that have not ended."""
        return len(self._open[table.name])

    def _decode(self, records: EffectiveRecords, number: int) -> tuple[int, AnyMessage]:
        offset = int(records.offsets[number])
        try:
            return offset, decode_value(records.value(number)).message
        except CorruptDataError as error:
            raise CorruptDataError(f"The record at offset {offset} can't be decoded: {error}") from error

    def _step(
        self,
        messages: Iterable[tuple[int, AnyMessage, Sequence[SmallTable]]],
        effective: int,
        time: int,
        ended: dict[str, list[Row]],
    ) -> None:
        """Replay records that take effect at one offset, each with the tables that are made of its type."""
        touched: dict[SmallTable, dict[Key, None]] = {}
        delta: MetadataDelta | None = None
        for offset, message, tables in messages:
            removed = None
            if isinstance(message, r.TopicRecord):  # the most frequent type; the image here holds no topics
                self._topics[message.topic_id] = message.name
            else:
                if delta is None:
                    delta = MetadataDelta(self._image)
                removed = self._replay(delta, offset, message)
            for table in tables:
                key_of = table.key_of_record.get(type(message))
                keys = [] if key_of is None else [key_of(message)]
                if removed is not None and table.removed_topic is not None:
                    keys += table.removed_topic(self._image, removed)
                touched.setdefault(table, {}).update(dict.fromkeys(keys))
        if delta is not None:
            self._image = delta.apply(self._image.provenance)
        for table, changed in touched.items():
            for key in changed:
                self._change(table, key, effective, time, ended)

    def _replay(self, delta: MetadataDelta, offset: int, message: AnyMessage) -> str | None:
        """Replay a record; returns the name of the topic that it removes."""
        if not isinstance(message, r.RemoveTopicRecord):
            delta.replay(message, offset)
            return None
        name = self._topics.pop(message.topic_id, None)
        if name is None:
            raise ReplayError(
                f"Offset {offset}, {type_name(type(message))}: the topic with id {message.topic_id} does not exist.",
                offset=offset,
            )
        delta.get_or_create_configs_delta().replay_remove_topic(name)
        return name

    def _state(self, table: SmallTable, key: Key) -> Any:
        return self._topics.get(key) if table is TOPICS else table.look(self._image, key)

    def _change(self, table: SmallTable, key: Key, offset: int, time: int, ended: dict[str, list[Row]]) -> None:
        open_ = self._open[table.name]
        before, state = open_.get(key), self._state(table, key)
        if before is not None:
            if state is not None and before.state == state:
                return
            del open_[key]
            if before.since != offset:
                row = (*before.row, before.since, offset, _micros(before.since_time), _micros(time))
                ended.setdefault(table.name, []).append(row)
        if state is not None:
            open_[key] = _Open(table.row(key, state), state, offset, time)


def _micros(time_ms: int) -> int | None:
    return None if time_ms < 0 else time_ms * 1000
