"""What a change of topics costs in the kernels' loop, with and without a journal, and small changes of small images.

    python -m benchmarks.row_changes            # a million partitions; seconds

CPU time of one thread, the least of several calls, on values in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from kraftlake.delta.topics.bulk_change import BulkChange
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.topics.packed_topics import PackedTopics
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.records import metadata_records as r
from kraftlake.records.serde import encode_value
from kraftlake.records.uuid import Uuid

TOPICS: Final = 100_000
PARTITIONS: Final = 10
"""Of each topic."""
CALLS: Final = 5
SMALL: Final = (12, 60)
"""The topics of small images."""
_HOMES = tuple(Uuid(bytes(15) + bytes([broker])) for broker in (101, 102, 103))
_NEW = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}

Values = tuple[Any, Any, Any]
"""The bytes of values (uint8), and where each begins and ends (int64)."""


def values_of(records: list[Any], topics: int, partitions: int) -> Values:
    """One record after the other for each partition; its ids, and a topic's name, are put into the bytes."""
    template = [np.frombuffer(encode_value(record, record.VERSIONS.high), np.uint8) for record in records]
    size = sum(map(len, template))
    data = np.tile(np.concatenate(template), (topics, 1))
    begins = np.cumsum([0, *map(len, template)])
    numbers = np.arange(topics, dtype=">u8").view(np.uint8).reshape(-1, 8)
    for record, begin in zip(records, begins.tolist(), strict=False):
        if isinstance(record, r.TopicRecord):
            data[:, begin + 4 : begin + 12] = [list(f"{topic:08}".encode()) for topic in range(topics)]
            data[:, begin + 20 : begin + 28] = numbers
        else:
            data[:, begin + 15 : begin + 23] = numbers
    starts = (np.arange(topics)[:, None] * size + begins[:-1]).reshape(-1).astype(np.int64)
    stops = (np.arange(topics)[:, None] * size + begins[1:]).reshape(-1).astype(np.int64)
    assert len(records) in (partitions, partitions + 1), "a record for each partition"
    return data.reshape(-1), starts, stops


def least(call: Callable[[], object], calls: int = CALLS) -> float:
    """The least CPU time of a call, in seconds."""
    times = []
    for _ in range(calls):
        began = time.thread_time()
        call()
        times.append(time.thread_time() - began)
    return min(times)


def replayed(base: PackedTopics, values: Values, *, journaled: bool) -> BulkChange:
    """The change that values make."""
    change, (data, starts, stops) = BulkChange(base, of_log=True), values
    if journaled:
        stop = change.replay_journaled(data, starts, stops)[0]
    else:
        stop = change.replay(data, starts, stops, 0, len(starts))[0]
    assert stop == len(starts), "all are replayed"
    return change


def bulk() -> None:
    """The loop on many records."""
    topic = r.TopicRecord(name="0" * 8, topic_id=Uuid.ZERO)
    some = range(PARTITIONS)
    new = [r.PartitionRecord(partition_id=p, topic_id=Uuid.ZERO, directories=_HOMES, **_NEW) for p in some]
    isr = [r.PartitionChangeRecord(partition_id=p, topic_id=Uuid.ZERO, leader=2, isr=(2, 3)) for p in some]
    load, changes = values_of([topic, *new], TOPICS, PARTITIONS), values_of(isr, TOPICS, PARTITIONS)
    empty = TopicsImage.EMPTY.rows()
    base = replayed(empty, load, journaled=False).apply()
    for what, on, values in (("load", empty, load), ("a change of each partition", base, changes)):
        plain, noted = (
            least(lambda on=on, values=values, journaled=journaled: replayed(on, values, journaled=journaled))  # type: ignore[misc]
            for journaled in (False, True)
        )
        print(f"{what:28} {plain * 1e3:8.1f} ms, with a journal {noted * 1e3:8.1f} ms")


def single() -> None:
    """Small changes of small images."""
    new_id = Uuid(bytes(14) + b"\1\1")
    created = [r.TopicRecord(name="new", topic_id=new_id)]
    created += [
        r.PartitionRecord(partition_id=p, topic_id=new_id, directories=_HOMES, **_NEW) for p in range(PARTITIONS)
    ]
    removed = r.RemoveTopicRecord(topic_id=Uuid(bytes(15) + b"\7"))
    record = r.PartitionChangeRecord(partition_id=3, topic_id=Uuid(bytes(15) + b"\7"), leader=2, isr=(2, 3))
    for topics in SMALL:
        delta = TopicsDelta(TopicsImage.EMPTY)
        for topic in range(topics):
            topic_id = Uuid(bytes(15) + bytes([topic]))
            delta.keep(r.TopicRecord(name=f"t{topic}", topic_id=topic_id))
            for p in range(PARTITIONS):
                delta.keep(r.PartitionRecord(partition_id=p, topic_id=topic_id, directories=_HOMES, **_NEW))
        image = delta.apply()
        changes: dict[str, Callable[[], TopicsImage]] = {
            "a change of a partition": lambda image=image: change(image, [record]),  # type: ignore[misc]
            "a created topic": lambda image=image: change(image, created),  # type: ignore[misc]
            "a removed topic": lambda image=image: change(image, [], removed),  # type: ignore[misc]
        }
        for what, call in changes.items():
            print(f"{topics * PARTITIONS:6} partitions, {what:24} {least(call, 20_000) * 1e6:8.1f} µs")


def change(image: TopicsImage, records: list[Any], removed: r.RemoveTopicRecord | None = None) -> TopicsImage:
    """The image after some records, or a removed topic."""
    delta = TopicsDelta(image)
    for record in records:
        delta.keep(record)
    if removed is not None:
        delta.replay_remove_topic(removed)
    return delta.apply()


if __name__ == "__main__":
    bulk()
    single()
