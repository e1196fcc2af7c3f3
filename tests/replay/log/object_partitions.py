"""All partitions as an image, changed record by record: the reference of `PartitionStore`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from kraftlake.delta.faults import place_of
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.records.uuid import Uuid
from kraftlake.replay.loader.record_faults import decode_record
from kraftlake.replay.log.effective_records import EffectiveRecords
from kraftlake.replay.log.partition_changes import Heaps, Names, PartitionChanges, PartitionRows
from kraftlake.replay.log.partition_store import Fault, Skip
from kraftlake.runtime.errors import CorruptDataError, KraftlakeError, ReplayError
from tests.delta.topics.object_change import ObjectChange
from tests.replay.log.gathered_changes import GatheredChanges, Key, Touched

_KINDS = (r.TopicRecord, r.PartitionRecord, r.PartitionChangeRecord, r.RemoveTopicRecord, r.ClearElrRecord)


class ObjectStore:
    """As PartitionStore, by objects alone."""

    def __init__(self, *, of_shard: bool = False) -> None:
        self._of_shard = of_shard
        self.begin(TopicsImage.EMPTY, -1, -1)

    def begin(self, topics: TopicsImage, since: Any, since_times: Any) -> None:
        begins = [np.broadcast_to(np.asarray(numbers), (topics.partition_count,)) for numbers in (since, since_times)]
        self.partitions = ObjectPartitions(topics, *begins, of_shard=self._of_shard)

    def image(self) -> tuple[TopicsImage, Any, Any]:
        return self.partitions.image()

    def topics(self) -> TopicsImage:
        return self.image()[0]

    def rows(self) -> PartitionRows:
        return self.partitions.rows()

    def fold(
        self, records: EffectiveRecords, deltas: Any, end: int, skip: Skip | None = None
    ) -> tuple[PartitionChanges, Fault | None]:
        assert (deltas < end).all(), "all deltas are whole"
        kept, before = np.arange(len(records)), self.partitions.state
        while True:
            changes, fault = self.partitions.fold(records.where(kept), deltas[kept])
            changes.removed[:, 2] = kept[changes.removed[:, 2]]
            if fault is None:
                return changes, None
            place = records.offsets.tolist().index(fault.offset)  # type: ignore[attr-defined]
            if skip is None:
                return changes, (place, fault)
            skip(place, fault)
            kept, self.partitions.state = kept[kept != place], before


class ObjectPartitions:
    """The topics as an image, and since which offset and time each partition is what it is."""

    def __init__(self, topics: TopicsImage, since: Any, since_times: Any, *, of_shard: bool = False) -> None:
        """Begin with the partitions of an image, and since when each is so, in the order of `topics.rows()`.

        `of_shard` is that of PartitionStore.
        """
        self._of_shard = of_shard
        self._topics = self._base = TopicsImage.with_rows(topics.rows().merged())
        self._base_since = since, since_times
        self._since: dict[Key, tuple[int, int]] = {}
        """Of the partitions that have changed, and of those that the base can't find by row."""
        table = self._base.rows().table
        for number, partitions in table.sparse.items():
            topic_id, first = table.id_of(number), table.bounds[number]
            for row, partition in enumerate(partitions, start=first):
                self._since[topic_id, partition] = int(since[row]), int(since_times[row])

    @property
    def state(self) -> tuple[TopicsImage, dict[Key, tuple[int, int]]]:
        """The state, to go back to."""
        return self._topics, {**self._since}

    @state.setter
    def state(self, state: tuple[TopicsImage, dict[Key, tuple[int, int]]]) -> None:
        self._topics, self._since = state[0], {**state[1]}

    @property
    def topic_count(self) -> int:
        """The number of topics."""
        return self._topics.topic_count

    @property
    def count(self) -> int:
        """The number of partitions."""
        return self._topics.partition_count

    def fold(self, records: EffectiveRecords, deltas: Any) -> tuple[PartitionChanges, KraftlakeError | None]:
        """Fold records of topics of whole deltas; gives the changes, and what is wrong with the first bad record.

        A record that contradicts what is there, or can't be decoded, ends the fold in front of its delta; the error
        names the offset.
        """
        gathered = GatheredChanges()
        for number, first, last in _runs(deltas, 0, len(records)):
            mark = gathered.mark()
            try:
                self._fold_delta(gathered, number, records, first, last)
            except (CorruptDataError, ReplayError) as error:
                gathered.go_back(mark)
                return gathered.changes(self._topics), error
        return gathered.changes(self._topics), None

    def _fold_delta(
        self, gathered: GatheredChanges, number: int, records: EffectiveRecords, first: int, last: int
    ) -> None:
        change = ObjectChange(self._topics)
        change.of_log = True
        since: dict[Key, tuple[int, int] | None] = {}
        for offset, begin, end in _runs(records.effective, first, last):
            step = _Step(change, of_shard=self._of_shard)
            for index in range(begin, end):
                step.replay(records, index)
            at = (offset, int(records.times[begin]))
            for key, touched in step.touched.items():
                after = step.state(key)
                began = at if touched.before is None else since.get(key) or self._since_of(key)
                gathered.add(key, touched, after, (*at, number, *began))
                if after is None:
                    since[key] = None
                elif after != touched.before:
                    since[key] = at
            gathered.created += [(number, gathered.topic(*created)) for created in step.created]
            gathered.removed += [(number, gathered.topic(id_, name), record) for id_, name, record in step.removed]
        self._topics = change.apply()
        self._since.update((key, at) for key, at in since.items() if at is not None)
        for key in (key for key, at in since.items() if at is None):
            self._since.pop(key, None)

    def rows(self) -> PartitionRows:
        """All partitions."""
        topics, since, since_times = self.image()
        packed = topics.rows().merged()
        table = packed.table
        ids = [str(table.id_of(number)) for number in range(table.topic_count)]
        return PartitionRows(
            rows=packed.rows,
            topics=table.topic_numbers(),
            partitions=table.partition_ids(),
            since=since,
            since_times=since_times,
            names=Names.of(table.names, ids, packed.directories),
            heaps=Heaps(np.asarray(packed.heap), np.asarray(packed.heap)[:0]),
        )

    def image(self) -> tuple[TopicsImage, Any, Any]:
        """The topics as an image, and since when each partition is so, in the order of its rows."""
        topics = TopicsImage.with_rows(self._topics.rows().merged())
        begins = [self._since_of(key) for key in _keys_of(topics.rows())]
        since = np.array(begins, np.int64).reshape(-1, 2)
        return topics, since[:, 0].copy(), since[:, 1].copy()

    def _since_of(self, key: Key) -> tuple[int, int]:
        known = self._since.get(key)
        if known is not None:
            return known
        found = self._base.find_partition(*key)
        assert found is not None, "a partition is one of the base or has changed"
        row, _ = found
        offsets, times = self._base_since
        return int(offsets[row]), int(times[row])


class _Step:
    """What the records that take effect at one offset do to a change."""

    def __init__(self, change: ObjectChange, *, of_shard: bool) -> None:
        self._change = change
        self._of_shard = of_shard
        self.touched: dict[Key, Touched] = {}
        self.created: list[tuple[Uuid, str]] = []
        """The ids and names of topics."""
        self.removed: list[tuple[Uuid, str, int]] = []
        """The same, with the numbers of their records."""

    def state(self, key: Key) -> PartitionRegistration | None:
        """What a partition is now."""
        topic_id, partition = key
        delta = self._change.changed.get(topic_id)
        if delta is not None:
            return delta.partition(partition)
        topic = None if topic_id in self._change.deleted else self._change.image.get_topic_by_id(topic_id)
        return None if topic is None else topic.partitions.get(partition)

    def replay(self, records: EffectiveRecords, index: int) -> None:
        """Replay one of the records where it is of a topic."""
        offset = int(records.offsets[index])
        message = decode_record(records.value(index), offset)
        if not isinstance(message, _KINDS):
            return
        try:
            match message:
                case r.PartitionRecord() | r.PartitionChangeRecord():
                    self._replay_partition(message)
                case r.TopicRecord():
                    self._replay_topic(message)
                case r.RemoveTopicRecord():
                    self._touch_all(message.topic_id)
                    name = self._change.remove_topic(message)
                    self.removed.append((message.topic_id, name, index))
                case r.ClearElrRecord():
                    self._clear_elr(message)
        except ReplayError as error:
            raise ReplayError(f"{place_of(message, offset)}{error}", offset=offset) from error

    def _replay_partition(self, message: r.PartitionRecord | r.PartitionChangeRecord) -> None:
        key = (message.topic_id, message.partition_id)
        before, (unclean, eligible) = self.state(key), self._elections(key)
        self._change.replay(message)
        touched = self.touched.get(key)
        if touched is None:
            touched = self.touched[key] = Touched(self._change.changed[message.topic_id].name, before)
        unclean_now, eligible_now = self._elections(key)
        touched.unclean += unclean_now - unclean
        touched.eligible += eligible_now - eligible
        touched.written |= isinstance(message, r.PartitionRecord) or message.directories is not None

    def _elections(self, key: Key) -> tuple[int, int]:
        delta = self._change.changed.get(key[0])
        return (0, 0) if delta is None else (delta.unclean_elections.get(key[1], 0), delta.elr_elections.get(key[1], 0))

    def _replay_topic(self, message: r.TopicRecord) -> None:
        if not self._change.holds_topic(message.name):
            self.created.append((message.topic_id, message.name))
        self._touch_all(message.topic_id)  # a topic that exists begins anew
        self._change.replay(message)

    def _touch_all(self, topic_id: Uuid) -> None:
        """Touch all partitions of a topic, if it exists."""
        delta = self._change.changed.get(topic_id)
        topic = self._change.image.get_topic_by_id(topic_id) if delta is None else delta.image
        if topic is None:
            return
        for partition in sorted({*topic.partitions, *(delta.partition_changes if delta else ())}):
            state = self.state((topic_id, partition))
            if state is not None:
                self.touched.setdefault((topic_id, partition), Touched(topic.name, state))

    def _clear_elr(self, message: r.ClearElrRecord) -> None:
        if self._of_shard and message.topic_name and not self._change.holds_topic(message.topic_name):
            return
        known = {topic_id: {**delta.partition_changes} for topic_id, delta in self._change.changed.items()}
        self._change.replay(message)
        for topic_id, delta in self._change.changed.items():
            before = known.get(topic_id, {})
            for partition, state in delta.partition_changes.items():
                if before.get(partition) is not state:
                    was = before.get(partition) or delta.image.partitions.get(partition)
                    self.touched.setdefault((topic_id, partition), Touched(delta.name, was))


def _runs(keys: Any, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Each run of equal ones of `keys[first:last]`, with the places of its first and of the one behind its last."""
    if first == last:
        return
    inner = (np.flatnonzero(np.diff(keys[first:last])) + first + 1).tolist()
    for begin, end in pairwise([first, *inner, last]):
        yield int(keys[begin]), begin, end


def _keys_of(packed: PackedTopics) -> Iterator[Key]:
    """The key of each row."""
    table = packed.table
    for number in range(table.topic_count):
        topic_id, size = table.id_of(number), table.bounds[number + 1] - table.bounds[number]
        yield from ((topic_id, partition) for partition in table.sparse.get(number, range(size)))
