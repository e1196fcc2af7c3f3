from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.control_records import LeaderChangeMessage, LeaderChangeVoter, SnapshotFooterRecord
from kraftlake.records.metadata_records import (
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from kraftlake.records.serde import (
    ApiMessageAndVersion,
    UnknownRecord,
    decode_control,
    decode_value,
    encode_control,
    encode_value,
    read_frame,
    record_type,
)
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, UnwritableMetadataError
from tests.memory import peak_memory
from tests.records.sample_logs import LOG_FILES, whole_batches
from tests.strategies import METADATA_TYPES, control_messages, messages, messages_of, unknown_records, versions_of


@pytest.mark.parametrize(
    ("cls", "version"),
    [(cls, version) for cls in METADATA_TYPES for version in versions_of(cls)],
    ids=lambda it: getattr(it, "__name__", it),
)
@given(data=st.data())
def test_a_type_survives_in_each_of_its_versions(cls: type, version: int, data: st.DataObject) -> None:
    message = data.draw(messages_of(cls, version))
    payload = encode_value(message, version)
    assert read_frame(payload) == (cls.API_KEY, version)
    read = decode_value(payload)
    assert read == ApiMessageAndVersion(message, version)
    assert encode_value(read.message, read.version) == payload


@given(control_messages())
def test_control_records_survive(written: ApiMessageAndVersion) -> None:
    key, value = encode_control(written.message)
    assert key == bytes((0, 0, 0, written.message.API_KEY))
    assert decode_control(written.message.API_KEY, value) == written


@given(unknown_records())
def test_records_of_unknown_types_and_versions_are_kept_as_bytes(unknown: ApiMessageAndVersion) -> None:
    read = decode_value(unknown.message.payload)
    assert read == unknown
    assert encode_value(read.message, read.version) == unknown.message.payload


def test_unknown_control_records_are_kept_as_bytes() -> None:
    for control_type, value in ((9, b"\x00\x03abc"), (9, b""), (2, b"\x00\x07later")):
        read = decode_control(control_type, value)
        assert isinstance(read.message, UnknownRecord)
        assert encode_control(read.message) == (bytes((0, 0, 0, control_type)), value)
    with pytest.raises(CorruptDataError, match="version -1"):
        decode_control(2, b"\xff\xff")


def test_unknown_tagged_fields_are_kept_in_their_place() -> None:
    # tags 0 (isr), 7 (unknown at version 0), 1000 and the largest
    payload = bytes.fromhex("010500" + "00000001" + "11" * 16 + "04" + "000502" + "00000005")
    payload += bytes.fromhex("0702abcd" + "e80700" + "ffffffff0f0101")
    message = decode_value(payload).message
    assert message == PartitionChangeRecord(
        partition_id=1,
        topic_id=Uuid(b"\x11" * 16),
        isr=(5,),
        unknown_tagged_fields=((7, b"\xab\xcd"), (1000, b""), (0xFFFFFFFF, b"\x01")),
    )
    assert encode_value(message, 0) == payload


def test_a_field_that_the_version_lacks_is_refused_unless_it_holds_its_default() -> None:
    partition = PartitionRecord(partition_id=1, directories=(Uuid.ZERO,))
    with pytest.raises(UnwritableMetadataError, match="PartitionRecord version 0 has no field directories"):
        encode_value(partition, 0)
    assert decode_value(encode_value(partition, 1)).message == partition
    assert decode_value(encode_value(attrs.evolve(partition, directories=()), 0)).version == 0
    with pytest.raises(UnwritableMetadataError, match="isMigratingZkBroker"):
        encode_value(RegisterBrokerRecord(is_migrating_zk_broker=True), 1)
    voter = LeaderChangeVoter(voter_directory_id=Uuid(b"1" * 16))
    with pytest.raises(UnwritableMetadataError, match="voterDirectoryId"):
        encode_control(LeaderChangeMessage(version=0, voters=(voter,)))


@pytest.mark.parametrize(
    ("message", "version", "reason"),
    [
        (NoOpRecord(), 1, "versions 0 to 0, not 1"),
        (NoOpRecord(), -1, "not -1"),
        (PartitionRecord(partition_id=1 << 31), 0, "can't be written"),
        (PartitionRecord(replicas=None), 0, "null"),
        (PartitionRecord(replicas=("one",)), 0, "can't be written"),
        (TopicRecord(name=None), 0, "null"),
        (TopicRecord(name="\ud800"), 0, "UTF-8"),
        (TopicRecord(name=7), 0, "can't be written"),
        (TopicRecord(name="\u00e9" * 0x4000), 0, "a string has more than 32767 bytes"),
        (TopicRecord(topic_id=Uuid(b"short")), 0, "16 bytes"),
        (NoOpRecord(unknown_tagged_fields=((1, b""), (1, b""))), 0, "twice"),
        (PartitionRecord(leader_recovery_state=1, unknown_tagged_fields=((0, b""),)), 0, "twice"),
        (SnapshotFooterRecord(), 0, "not a metadata record"),
    ],
)
def test_what_does_not_fit_its_field_is_refused(message: object, version: int, reason: str) -> None:
    with pytest.raises(UnwritableMetadataError, match=reason):
        encode_value(message, version)


def test_the_longest_string_that_kafka_reads_is_written() -> None:
    record = ApiMessageAndVersion(TopicRecord(name="a" * 0x7FFF), 0)
    assert decode_value(encode_value(record.message, record.version)) == record


def test_a_metadata_record_is_no_control_record() -> None:
    with pytest.raises(UnwritableMetadataError, match="not a control record"):
        encode_control(NoOpRecord())


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "no frame"),
        (b"\x01", "no frame"),
        (b"\x01\xff\xff\xff\xff\xff\x01\x00", "no frame"),
        (b"\x00\x14\x00\x00", "frame version 0"),
        (b"\x02\x14\x00\x00", "frame version 2"),
        (b"\x01\xff\xff\x03\x00", "out of range"),
        (b"\x01\x14\x00", "NoOpRecord version 0.*too early"),
        (b"\x01\x14\x00\x00\x00", "1 bytes are left"),
        (b"\x01\x14\x00\x01\x05\x09\x00", "tagged field is longer"),
        (b"\x01\x14\x00\x02\x05\x00\x05\x00", "twice"),
        (b"\x01\x14\x00\xff\xff\xff\xff\x0f", "more tagged fields than can be"),
        (b"\x01\x02\x00\x00", "null where none may be"),
        (b"\x01\x02\x00\xff\xff\xff\xff\x0f", "string is longer"),
        (b"\x01\x02\x00\x02\xff" + bytes(17), "UTF-8"),
        (b"\x01\x02\x00\x03\xc3", "string is longer"),
        (b"\x01\x05\x00" + bytes(20) + b"\x01\x00\x05\xff\xff\xff\xff\x0f", "array is longer"),
        (b"\x01\x05\x00" + bytes(20) + b"\x01\x01\x05\x00\x00\x00\x01\x00", "another length"),
        (b"\x01\x00\x00" + bytes(28) + b"\xff\xff\xff\xff\x07", "array is longer"),
    ],
)
def test_bytes_that_are_no_record_are_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(CorruptDataError, match=reason):
        decode_value(payload)


@given(st.binary(max_size=300), st.integers(0, 30), st.integers(0, 5))
def test_arbitrary_bytes_give_a_record_or_our_error(noise: bytes, api_key: int, version: int) -> None:
    for payload in (noise, bytes((1, api_key, version)) + noise):
        try:
            read = decode_value(payload)
        except CorruptDataError:
            continue
        assert_stable(read)
    try:
        control = decode_control(api_key % 8, noise)
    except CorruptDataError:
        return
    key, value = encode_control(control.message)
    assert encode_control(decode_control(api_key % 8, value).message) == (key, value)


def assert_stable(read: ApiMessageAndVersion) -> None:
    """What was read is written as bytes that are read as the same: a record has one form, whatever it was read from."""
    written = encode_value(read.message, read.version)
    again = decode_value(written)
    assert (type(again.message), again.version) == (type(read.message), read.version)
    assert encode_value(again.message, again.version) == written


@given(messages(), st.data())
def test_a_broken_record_gives_a_record_or_our_error(written: ApiMessageAndVersion, data: st.DataObject) -> None:
    payload = bytearray(encode_value(written.message, written.version))
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    payload = payload[: data.draw(st.integers(0, len(payload)))]
    try:
        read = decode_value(bytes(payload))
    except CorruptDataError:
        return
    assert_stable(read)


def test_lengths_are_checked_before_anything_is_allocated() -> None:
    huge = b"\xff\xff\xff\xff\x07"
    for payload in (
        b"\x01\x02\x00" + huge + b"a" * 50,
        b"\x01\x00\x00" + bytes(28) + huge + b"\x01" * 50,
        b"\x01\x05\x00" + bytes(20) + b"\x01\x00\x05" + huge,
        b"\x01\x05\x02" + bytes(20) + b"\x01\x08\x05" + huge,
        b"\x01\x0a\x00\x01\x01" + huge + b"\x01" * 50,
        b"\x01\x14\x00" + huge,
    ):

        def refuse(payload: bytes = payload) -> None:
            with pytest.raises(CorruptDataError):
                decode_value(payload)

        refuse()  # the codec of the type is made and kept here
        assert peak_memory(refuse) < 100_000


def test_messages_are_frozen_however_they_were_made() -> None:
    read = decode_value(encode_value(TopicRecord(name="a"), 0))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        read.message.name = "b"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        read.version = 1
    assert hash(read) == hash(ApiMessageAndVersion(TopicRecord(name="a"), 0))
    assert type(read.message) is TopicRecord


def test_secrets_are_not_in_the_repr() -> None:
    assert "hunter2" not in repr(ConfigRecord(name="ssl.key.password", value="hunter2"))
    assert "hunter2" not in repr(UnknownRecord(99, 0, b"hunter2"))


def test_types_are_named_as_kafkas_dump_tool_does() -> None:
    assert record_type(False, 5, 2) == "PARTITION_CHANGE_RECORD"
    assert record_type(False, 5, 3) == "UNKNOWN"
    assert record_type(True, 2, 1) == "LEADER_CHANGE"
    assert record_type(True, 7, 0) == "UNKNOWN"


def test_a_number_may_be_written_with_more_bytes_than_it_takes() -> None:
    (batch, *_) = [batch for batch in whole_batches(LOG_FILES[0]) if not batch.control]
    payload = batch.values[0]
    longer = bytes((0x81, 0, 0x80 | payload[1], 0, 0x80 | payload[2], 0)) + payload[3:]
    assert decode_value(longer) == decode_value(payload)
