from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.generate.template import RecordKind, RecordTemplate, big_endian
from kraftlake.records.metadata_records import PartitionChangeRecord, RegisterBrokerRecord, TopicRecord
from kraftlake.records.serde import encode_value
from kraftlake.records.uuid import Uuid

INT32 = st.integers(-(2**31), 2**31 - 1)


@given(
    records=st.lists(
        st.builds(
            PartitionChangeRecord,
            partition_id=INT32,
            topic_id=st.binary(min_size=16, max_size=16).map(Uuid),
            isr=st.tuples(INT32, INT32, INT32),
            leader=INT32.filter(lambda leader: leader != -2),
            directories=st.tuples(*[st.binary(min_size=16, max_size=16).map(Uuid)] * 2),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_filled_gaps_are_what_the_codec_writes(records: list[PartitionChangeRecord]) -> None:
    template = RecordTemplate(
        PartitionChangeRecord,
        2,
        {
            "partition_id": ("int32", 0),
            "topic_id": ("uuid", 0),
            "isr": ("int32", 3),
            "leader": ("int32", 0),
            "directories": ("uuid", 2),
        },
    )
    values = template.fill(
        len(records),
        {
            "partition_id": big_endian(np.array([record.partition_id for record in records], np.int32)),
            "topic_id": np.array([list(record.topic_id) for record in records], np.uint8),
            "isr": big_endian(np.array([record.isr for record in records], np.int32)),
            "leader": big_endian(np.array([record.leader for record in records], np.int32)),
            "directories": np.array([list(b"".join(record.directories or ())) for record in records], np.uint8),
        },
    )
    assert [row.tobytes() for row in values] == [encode_value(record, 2) for record in records]


def test_texts_and_long_numbers_have_gaps_too() -> None:
    topic = RecordTemplate(TopicRecord, 0, {"name": ("text", 5)}, {"topic_id": Uuid(b"t" * 16)})
    (value,) = topic.fill(1, {"name": np.frombuffer(b"foo-1", np.uint8).reshape(1, 5)})
    assert value.tobytes() == encode_value(TopicRecord(name="foo-1", topic_id=Uuid(b"t" * 16)), 0)

    fixed = {"broker_id": 1, "incarnation_id": Uuid(b"i" * 16), "end_points": (), "features": (), "rack": None}
    broker = RecordTemplate(RegisterBrokerRecord, 3, {"broker_epoch": ("int64", 0)}, fixed)
    (value,) = broker.fill(1, {"broker_epoch": big_endian(np.array([2**40], np.int64))})
    assert value.tobytes() == encode_value(RegisterBrokerRecord(**fixed, broker_epoch=2**40), 3)


def test_each_gap_needs_a_column() -> None:
    topic = RecordTemplate(TopicRecord, 0, {"name": ("text", 5)}, {"topic_id": Uuid.ZERO})
    with pytest.raises(AssertionError, match="each gap"):
        topic.fill(1, {})


def test_the_kind_of_a_record_matches_the_columns_of_the_log() -> None:
    assert RecordKind.of(TopicRecord, 0) == RecordKind(name="TOPIC_RECORD", api_key=2, version=0)
