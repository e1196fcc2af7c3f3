from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records import Uuid
from kraftlake.records.arrow_form import arrow_schema, from_arrow, to_arrow
from kraftlake.records.metadata_records import PartitionChangeRecord, RegisterBrokerRecord, TopicRecord
from kraftlake.runtime import CorruptDataError, UnwritableMetadataError
from tests.strategies import CONTROL_TYPES, METADATA_TYPES, messages_of, versions_of


@pytest.mark.parametrize("cls", [*METADATA_TYPES, *CONTROL_TYPES], ids=lambda cls: cls.__name__)
@given(data=st.data())
def test_messages_become_rows_and_messages_again(cls: type, data: st.DataObject) -> None:
    of_any_version = st.sampled_from(versions_of(cls)).flatmap(lambda version: messages_of(cls, version))
    written = data.draw(st.lists(of_any_version, max_size=3))
    table = to_arrow(cls, written)
    assert table.schema == arrow_schema(cls)
    table.validate(full=True)
    assert from_arrow(cls, table) == written


def test_a_row_has_the_fields_names_and_readable_values() -> None:
    topic = TopicRecord(name="foo", topic_id=Uuid(range(16)))
    assert to_arrow(TopicRecord, [topic]).to_pylist() == [
        {"name": "foo", "topic_id": "AAECAwQFBgcICQoLDA0ODw", "unknown_tagged_fields": []}
    ]
    schema = arrow_schema(PartitionChangeRecord)
    assert schema.field("leader").type == pa.int32()
    assert schema.field("isr").nullable
    assert not schema.field("leader").nullable
    port = arrow_schema(RegisterBrokerRecord).field("end_points").type.value_type.field("port")
    assert port.type == pa.int32()  # Spark has no unsigned numbers


def test_columns_may_be_in_any_order_and_more() -> None:
    table = to_arrow(TopicRecord, [TopicRecord(name="foo")])
    shuffled = table.select(table.column_names[::-1]).append_column("offset", pa.array([1]))
    assert from_arrow(TopicRecord, shuffled) == [TopicRecord(name="foo")]


@pytest.mark.parametrize("topic", [TopicRecord(name=7), TopicRecord(name="\ud800")])
def test_what_does_not_fit_its_column_is_refused(topic: Any) -> None:
    with pytest.raises(UnwritableMetadataError, match="TopicRecord"):
        to_arrow(TopicRecord, [topic])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"name": ["a"]}, "lack the column topic_id"),
        ({"name": ["a"], "topic_id": ["no uuid"], "unknown_tagged_fields": [[]]}, "not a Kafka UUID"),
        ({"name": [None], "topic_id": [str(Uuid.ZERO)], "unknown_tagged_fields": [[]]}, "null"),
        ({"name": [[1]], "topic_id": [str(Uuid.ZERO)], "unknown_tagged_fields": [[]]}, "no TopicRecord"),
    ],
)
def test_rows_that_are_no_messages_are_refused(rows: dict[str, Any], reason: str) -> None:
    with pytest.raises(CorruptDataError, match=reason):
        from_arrow(TopicRecord, pa.table(rows))
