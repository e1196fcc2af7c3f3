"""The states of all partitions as objects: for records that are odd, for few, and where there is no compiled code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import attrs
import pyarrow as pa

from kraftlake.delta.topics.object_change import ObjectChange
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.serde import decode_value
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, ReplayError
from kraftlake.tables.changes.effective_records import EffectiveRecords
from kraftlake.tables.history.columns import PARTITION_SCHEMA

Key: TypeAlias = tuple[Uuid, int]
"""A topic's id and a partition's number."""


@attrs.frozen
class OpenState:
    """What a partition is, and since which offset and time (epoch ms, -1 for none)."""

    topic: str
    state: PartitionRegistration
    since: int
    since_time: int


class ObjectPartitions:
    """The open state of each partition by topic id and number."""

    def __init__(self, topics: TopicsImage, open_: Mapping[Key, OpenState]) -> None:
        self.open = dict(open_)
        self._change = ObjectChange(topics)
        self._names = {topic_id: topic.name for topic_id, topic in topics.topics_by_id().items()}
        self._of_topic: dict[Uuid, set[int]] = {topic_id: set() for topic_id in self._names}
        for topic_id, partition in self.open:
            self._of_topic[topic_id].add(partition)

    def topics(self) -> TopicsImage:
        """The topics as an image."""
        return self._change.apply()

    def take(self, records: EffectiveRecords) -> pa.Table:
        """Replay records of topics; the states that ended. Raises ReplayError, CorruptDataError with the offset."""
        ended: list[tuple[Any, ...]] = []
        count, start = len(records), 0
        while start < count:
            stop = start + 1
            while stop < count and records.effective[stop] == records.effective[start]:
                stop += 1
            now: dict[Key, PartitionRegistration | None] = {}
            for index in range(start, stop):
                offset = int(records.offsets[index])
                try:
                    self._replay(decode_value(records.value(index)).message, now)
                except (ReplayError, CorruptDataError) as fault:
                    raise type(fault)(f"Offset {offset}: {fault}") from fault
            self._step(now, int(records.effective[start]), int(records.times[start]), ended)
            start = stop
        return _table(ended)

    def open_table(self) -> pa.Table:
        """The open states as rows of `partition_history/`."""
        return _table([(key, state, None, -1) for key, state in self.open.items()])

    def _replay(self, message: Any, now: dict[Key, PartitionRegistration | None]) -> None:
        """Replay a record, and note in `now` what the partitions are that it is of, None for those that are gone."""
        match message:
            case TopicRecord():
                self._change.replay(message)
                self._names[message.topic_id] = message.name
                self._of_topic.setdefault(message.topic_id, set())
            case PartitionRecord() | PartitionChangeRecord():
                self._change.replay(message)
                key = (message.topic_id, message.partition_id)
                now[key] = self._change.changed[message.topic_id].partition(message.partition_id)
                self._of_topic[message.topic_id].add(message.partition_id)
            case RemoveTopicRecord():
                self._change.remove_topic(message)
                now.update({(message.topic_id, partition): None for partition in self._of_topic.pop(message.topic_id)})
            case _:
                assert isinstance(message, ClearElrRecord), "there is no other record of a topic"
                self._clear_elr(message, now)

    def _clear_elr(self, record: ClearElrRecord, now: dict[Key, PartitionRegistration | None]) -> None:
        self._change.replay(record)
        for topic_id, delta in self._change.changed.items():
            if record.topic_name in ("", delta.name):
                now.update({(topic_id, partition): state for partition, state in delta.partition_changes.items()})

    def _step(
        self,
        now: Mapping[Key, PartitionRegistration | None],
        offset: int,
        time: int,
        ended: list[tuple[Any, ...]],
    ) -> None:
        for key, state in now.items():
            before = self.open.get(key)
            if before is not None and before.state == state:
                continue
            if before is not None:
                if before.since != offset:
                    ended.append((key, before, offset, time))
                del self.open[key]
            if state is not None:
                self.open[key] = OpenState(self._names[key[0]], state, offset, time)


def _table(rows: Iterable[tuple[Key, OpenState, int | None, int]]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: [] for name in PARTITION_SCHEMA.names}
    for (topic_id, partition), open_, to_offset, to_time in rows:
        state = open_.state
        values = {
            "topic": open_.topic,
            "topic_id": str(topic_id),
            "partition": partition,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "replicas": state.replicas,
            "isr": state.isr,
            "elr": state.elr,
            "last_known_elr": state.last_known_elr,
            "adding_replicas": state.adding_replicas,
            "removing_replicas": state.removing_replicas,
            "leader_recovery_state": int(state.leader_recovery_state),
            "directories": [str(directory) for directory in state.directories],
            "valid_from_offset": open_.since,
            "valid_to_offset": to_offset,
            "valid_from": None if open_.since_time < 0 else open_.since_time * 1000,
            "valid_to": None if to_time < 0 else to_time * 1000,
        }
        for name, value in values.items():
            columns[name].append(value)
    return pa.table([pa.array(columns[f.name], f.type) for f in PARTITION_SCHEMA], schema=PARTITION_SCHEMA)
