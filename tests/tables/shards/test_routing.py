"""Each record of a log goes to the shard of its topic, or to where its type says."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np
import pytest

from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import LeaderChangeMessage
from kraftlake.records.rows import to_rows
from kraftlake.records.schema import Message
from kraftlake.records.serde import encode_value
from kraftlake.records.uuid import Uuid
from kraftlake.replay.log.effective_records import records_of
from kraftlake.tables.shards.chunks import Part
from kraftlake.tables.shards.routing import Router, shards_of
from tests.replay.made_logs import data, topic, uuid_of

SHARDS = 5
REST, ALL, NONE = SHARDS, SHARDS + 1, SHARDS + 2
LEADER = RecordBatch.control_of(6, 2, 7, [LeaderChangeMessage(leader_id=3)])
IDS = [Uuid(number.to_bytes(16, "little")) for number in range(2, 300)]


def routed(*values: bytes) -> list[int]:
    ends = np.cumsum([0, *map(len, values)])
    data = np.frombuffer(b"".join(values), np.uint8)
    return list(shards_of(records_of(data, ends[:-1], ends[1:], ends[:-1], ends[:-1]), SHARDS))


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


LONGER = [
    lambda byte: bytes((byte | 0x80, 0)),
    lambda byte: bytes((byte | 0x80, 0x80, 0x80, 0x80, 0)),
]
"""A number below 128 in more bytes than it needs."""


@pytest.mark.parametrize("longer", LONGER)
@pytest.mark.parametrize("place", range(3))
def test_a_number_of_a_frame_counts_not_how_many_bytes_it_takes(longer: Callable[[int], bytes], place: int) -> None:
    topic_id = IDS[3]
    values = [
        value_of(r.TopicRecord(name="t", topic_id=topic_id)),
        value_of(r.PartitionChangeRecord(partition_id=7, topic_id=topic_id, leader=1)),
        value_of(r.ClearElrRecord(topic_name="t")),
        value_of(r.ConfigRecord(resource_type=2, resource_name="t", name="n", value="v")),
        value_of(r.NoOpRecord()),
    ]
    written = [value[:place] + longer(value[place]) + value[place + 1 :] for value in values]
    assert routed(*written) == routed(*values)
    assert routed(b"\x80\x80\x80\x80\x80\x80" + values[1], b"\x81\x02" + values[1][1:]) == [REST, REST]


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


def test_control_records_are_of_no_topic_and_go_to_the_driver_whatever_their_bytes() -> None:
    values = (value_of(r.NoOpRecord()), value_of(r.RemoveTopicRecord(topic_id=IDS[0])))
    batch = attrs.evolve(LEADER, values=values, control_types=(2, 2), timestamps=(7, 7))
    router = Router(SHARDS, Part.LOG)
    (chunk,) = [*router.take(to_rows([batch])), *router.flush()]
    assert (chunk.shard, len(chunk.content), chunk.content.control) == (REST, 0, (batch,))


def test_a_shard_knows_the_batches_of_its_records_and_the_driver_the_first_of_each_epoch() -> None:
    quiet = data(0, r.NoOpRecord(), r.NoOpRecord())
    change = r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(1), leader=2)
    log = [quiet, data(2, topic(1), change, r.NoOpRecord()), data(5, change), LEADER, data(7, r.NoOpRecord(), epoch=2)]
    router = Router(1, Part.STEP)
    shard, driver = (chunk.content for chunk in [*router.take(to_rows(log)), *router.flush()])
    assert (shard.offsets.tolist(), driver.offsets.tolist()) == ([2, 3, 5], [2])
    assert [*zip(shard.base_offsets.tolist(), shard.last_offsets.tolist(), strict=True)] == [(2, 4), (5, 5)]
    assert [*zip(driver.base_offsets.tolist(), driver.noop.tolist(), strict=True)] == [
        (0, True),
        (2, False),
        (6, False),
    ]
    assert shard.timestamps.tolist() == [log[1].timestamp, log[2].timestamp]
    assert (shard.control, driver.control) == ((), (LEADER,))
