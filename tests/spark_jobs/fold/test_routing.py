"""Each record of a log goes to the shard of its topic, or to where its type says."""

from __future__ import annotations

import numpy as np
import pytest

from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.records.serde import encode_value
from kraftlake.records.uuid import Uuid
from kraftlake.spark_jobs.fold.routing import shards_of

SHARDS = 5
REST, ALL, NONE = SHARDS, SHARDS + 1, SHARDS + 2
IDS = [Uuid(number.to_bytes(16, "little")) for number in range(2, 300)]


def routed(*values: bytes, control: bool = False) -> list[int]:
    ends = np.cumsum([0, *map(len, values)])
    data = np.frombuffer(b"".join(values), np.uint8)
    return list(shards_of(data, ends[:-1], ends[1:], np.full(len(values), control), SHARDS))


def value_of(message: Message) -> bytes:
    return encode_value(message, message.VERSIONS.high or 0)


@pytest.mark.parametrize("topic_id", IDS[:20], ids=str)
def test_all_records_of_a_topic_go_to_one_shard(topic_id: Uuid) -> None:
    shards = routed(
        value_of(r.TopicRecord(name="t", topic_id=topic_id)),
        value_of(r.TopicRecord(name="a" * 249, topic_id=topic_id)),
        value_of(r.PartitionRecord(partition_id=7, topic_id=topic_id)),
        value_of(r.PartitionChangeRecord(partition_id=7, topic_id=topic_id, leader=1)),
        value_of(r.RemoveTopicRecord(topic_id=topic_id)),
    )
    assert len({*shards}) == 1
    assert 0 <= shards[0] < SHARDS


def test_topics_spread_over_all_shards_even_where_their_ids_count_up() -> None:
    shards = routed(*(value_of(r.RemoveTopicRecord(topic_id=topic_id)) for topic_id in IDS))
    assert min(np.bincount(shards, minlength=SHARDS)) > len(IDS) // SHARDS // 2


@pytest.mark.parametrize(
    ("value", "to"),
    [
        (value_of(r.ConfigRecord(resource_type=2, resource_name="t", name="n", value="v")), REST),
        (value_of(r.ClearElrRecord(topic_name="t")), ALL),
        (value_of(r.BeginTransactionRecord(name="t")), ALL),
        (value_of(r.EndTransactionRecord()), ALL),
        (value_of(r.AbortTransactionRecord(reason="r")), ALL),
        (value_of(r.NoOpRecord()), NONE),
        (value_of(r.NoOpRecord()) + b"more", REST),
        (value_of(r.RemoveTopicRecord(topic_id=IDS[0]))[:18], REST),
        (value_of(r.TopicRecord(name="t", topic_id=IDS[0]))[:9], REST),
        (b"\1\2\0", REST),
        (b"\1\2\0\xff\xff\xff\xff\xff\xff", REST),
        (b"\1", REST),
        (b"", REST),
    ],
)
def test_other_records_go_where_their_type_says(value: bytes, to: int) -> None:
    assert routed(value) == [to]


def test_control_records_are_of_no_topic() -> None:
    assert routed(value_of(r.NoOpRecord()), value_of(r.RemoveTopicRecord(topic_id=IDS[0])), control=True) == [REST] * 2
