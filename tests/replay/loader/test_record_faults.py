"""How messages call a record that something is wrong with."""

from __future__ import annotations

import pytest

from kraftlake.records.metadata_records import TopicRecord
from kraftlake.records.serde import encode_value
from kraftlake.replay.loader.record_faults import decode_record, type_of
from kraftlake.runtime.errors import CorruptDataError
from tests.replay.made_logs import UNDECODABLE, UNKNOWN, topic


def test_a_record_is_called_by_its_type_as_far_as_that_is_known() -> None:
    assert type_of(topic(1)) == "TOPIC_RECORD"
    assert type_of(decode_record(UNKNOWN.payload, 0)) == "UNKNOWN"


def test_one_that_can_not_be_decoded_is_named_by_its_offset() -> None:
    assert isinstance(decode_record(encode_value(topic(1), 0), 7), TopicRecord)
    with pytest.raises(CorruptDataError, match="The record at offset 7 can't be decoded"):
        decode_record(UNDECODABLE, 7)
