from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.control_records import KRaftVersionRecord, LeaderChangeMessage, LeaderChangeVoter
from kraftlake.records.json_form import from_json, to_json
from kraftlake.records.log_record import LogRecord, log_records
from kraftlake.records.metadata_records import (
    AbortTransactionRecord,
    BrokerEndpoint,
    ClientQuotaRecord,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from kraftlake.records.serde import ApiMessageAndVersion, UnknownRecord
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import CorruptDataError, UnwritableMetadataError
from tests.strategies import CONTROL_TYPES, messages

TOPIC_ID = Uuid(range(16))


@given(messages(unknown_tags=False) | messages(CONTROL_TYPES, unknown_tags=False))
def test_json_comes_back_as_the_message(written: ApiMessageAndVersion) -> None:
    data = json.loads(json.dumps(to_json(written.message, written.version)))
    assert from_json(type(written.message), data, written.version) == written.message


def test_names_uuids_and_defaults_are_those_of_kafka() -> None:
    change = PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, isr=(), directories=(TOPIC_ID,))
    assert to_json(change, 1) == {
        "partitionId": 3,
        "topicId": "AAECAwQFBgcICQoLDA0ODw",
        "isr": [],
        "directories": ["AAECAwQFBgcICQoLDA0ODw"],
    }
    assert to_json(ConfigRecord(resource_type=2, name="a"), 0) == {
        "resourceType": 2,
        "resourceName": "",
        "name": "a",
        "value": "",
    }
    assert to_json(ConfigRecord(value=None), 0)["value"] is None
    assert to_json(AbortTransactionRecord(), 0) == {}
    assert to_json(UserScramCredentialRecord(salt=b"\xfb\xff"), 0)["salt"] == "+/8="
    assert to_json(KRaftVersionRecord(k_raft_version=1), 0) == {"version": 0, "kRaftVersion": 1}
    leader = LeaderChangeMessage(voters=(LeaderChangeVoter(voter_id=1),))
    assert to_json(leader, 0)["voters"] == [{"voterId": 1}]
    assert to_json(leader, 1)["voters"] == [{"voterId": 1, "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA"}]
    broker = RegisterBrokerRecord(end_points=(BrokerEndpoint(name="A", port=65535),))
    assert "isMigratingZkBroker" not in to_json(broker, 1)
    assert to_json(broker, 4)["endPoints"] == [{"name": "A", "host": "", "port": 65535, "securityProtocol": 0}]
    assert "cordonedLogDirs" not in to_json(broker, 4)


def test_a_field_that_the_version_lacks_and_that_holds_something_has_no_json() -> None:
    with pytest.raises(UnwritableMetadataError, match="PartitionRecord version 0 has no field directories"):
        to_json(PartitionRecord(directories=(TOPIC_ID,)), 0)


_TOPIC: dict[str, Any] = {"name": "a", "topicId": str(TOPIC_ID)}
_QUOTA: dict[str, Any] = {"entity": [], "key": "k", "value": 1.5, "remove": False}
_SCRAM = {"name": "a", "mechanism": 1, "salt": "AA==", "storedKey": "", "serverKey": "", "iterations": 1}


def test_a_whole_number_is_a_float_too() -> None:
    assert from_json(ClientQuotaRecord, {**_QUOTA, "value": 3}, 0) == ClientQuotaRecord(key="k", value=3.0)


@pytest.mark.parametrize(
    ("cls", "data", "version", "reason"),
    [
        (TopicRecord, [], 0, "not a JSON object"),
        (TopicRecord, _TOPIC, 1, "no version 1"),
        (TopicRecord, {"name": "a"}, 0, "lacks topicId"),
        (TopicRecord, {**_TOPIC, "colour": 1}, 0, "no field colour"),
        (TopicRecord, {**_TOPIC, "name": None}, 0, "name of a TopicRecord can't be null"),
        (TopicRecord, {**_TOPIC, "name": 1}, 0, "no string"),
        (TopicRecord, {**_TOPIC, "name": "\ud800"}, 0, "no string"),
        (TopicRecord, {**_TOPIC, "topicId": "short"}, 0, "no uuid"),
        (ClientQuotaRecord, {**_QUOTA, "value": "1"}, 0, "no float64"),
        (ClientQuotaRecord, {**_QUOTA, "value": 10**400}, 0, "no float64"),
        (ClientQuotaRecord, {**_QUOTA, "value": True}, 0, "no float64"),
        (ClientQuotaRecord, {**_QUOTA, "remove": 1}, 0, "no bool"),
        (ClientQuotaRecord, {**_QUOTA, "entity": {}}, 0, "not a JSON array"),
        (ClientQuotaRecord, {**_QUOTA, "entity": [7]}, 0, "not a JSON object"),
        (UserScramCredentialRecord, {**_SCRAM, "salt": "?"}, 0, "no bytes"),
        (UserScramCredentialRecord, {**_SCRAM, "mechanism": 128}, 0, "no int8"),
        (UserScramCredentialRecord, {**_SCRAM, "mechanism": True}, 0, "no int8"),
        (UserScramCredentialRecord, {**_SCRAM, "iterations": 1.0}, 0, "no int32"),
        (
            PartitionChangeRecord,
            {"partitionId": 1, "topicId": str(TOPIC_ID), "directories": []},
            0,
            "no field directories",
        ),
    ],
)
def test_json_that_is_no_record_is_refused(cls: type, data: Any, version: int, reason: str) -> None:
    with pytest.raises(CorruptDataError, match=reason):
        from_json(cls, data, version)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(messages(unknown_tags=False), _JSON, st.data())
def test_json_with_any_value_in_it_gives_a_message_or_our_error(
    written: ApiMessageAndVersion, value: Any, data: st.DataObject
) -> None:
    fields = to_json(written.message, written.version)
    fields[data.draw(st.sampled_from([*fields, "other"]))] = value
    try:
        read = from_json(type(written.message), fields, written.version)
    except CorruptDataError:
        return
    form = to_json(read, written.version)
    again = to_json(from_json(type(read), form, written.version), written.version)
    assert repr(again) == repr(form), "as text, for a NaN equals nothing"


def test_a_log_record_is_one_line_of_the_log() -> None:
    topic = ApiMessageAndVersion(TopicRecord(name="foo", topic_id=TOPIC_ID), 0)
    unknown = ApiMessageAndVersion(UnknownRecord(99, 1, b"\x01\x63\x01x"), 1)
    first, second = log_records(RecordBatch.of(5, 1, 1_700_000_000_000, [topic, unknown]))
    assert first == LogRecord(
        offset=5, epoch=1, timestamp=1_700_000_000_000, type="TOPIC_RECORD", version=0, message=topic.message
    )
    assert first.to_json() == {
        "offset": 5,
        "epoch": 1,
        "timestamp": 1_700_000_000_000,
        "type": "TOPIC_RECORD",
        "version": 0,
        "data": {"name": "foo", "topicId": "AAECAwQFBgcICQoLDA0ODw"},
    }
    assert second.to_json() == {
        "offset": 6,
        "epoch": 1,
        "timestamp": 1_700_000_000_000,
        "type": "UNKNOWN",
        "version": 1,
        "apiKey": 99,
        "data": "AWMBeA==",
    }
    (control,) = log_records(RecordBatch.control_of(7, 2, -1, [LeaderChangeMessage(leader_id=3)]))
    assert control.control
    assert control.to_json() == {
        "offset": 7,
        "epoch": 2,
        "timestamp": -1,
        "type": "LEADER_CHANGE",
        "version": 0,
        "data": {"version": 0, "leaderId": 3, "voters": [], "grantingVoters": []},
    }
