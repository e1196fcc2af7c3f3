"""Records without secrets and names; what has neither stays byte for byte."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import (
    METADATA_RECORDS,
    AccessControlEntryRecord,
    BrokerEndpoint,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    NoOpRecord,
    RegisterBrokerRecord,
    RemoveDelegationTokenRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from kraftlake.records.schema import Message, Names, Primitive, Struct, field_specs
from kraftlake.records.serde import ApiMessageAndVersion, UnknownRecord
from kraftlake.replay.bundle.rewriting import Rewriter
from kraftlake.runtime.errors import UnknownRecordError
from kraftlake.settings.tables import key_of
from tests.strategies import METADATA_TYPES, structs_of, versions_of

MARK = "NAME"


def rename(kind: Names, name: str) -> str:
    return f"{kind.value}:{MARK}" if name else ""


def rewritten(message: Any, version: int = 0, **options: Any) -> Any:
    batch = RecordBatch.of(7, 1, 1000, [ApiMessageAndVersion(message, version)])
    (made,) = Rewriter(**options).batch(batch).messages()
    assert made.version == version or isinstance(message, UnknownRecord)
    return made.message


@pytest.mark.parametrize(
    ("record", "version", "changed"),
    [
        (TopicRecord(name="orders"), 0, {"name": "topic:NAME"}),
        (ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="5"), 0,
         {"resource_name": "topic:NAME"}),
        (ConfigRecord(resource_type=2, resource_name="orders", name="cleanup.policy", value="compact, delete"), 0,
         {"resource_name": "topic:NAME"}),
        (ConfigRecord(resource_type=4, resource_name="7", name="leader.replication.throttled.rate", value="9"), 0, {}),
        (ConfigRecord(resource_type=2, resource_name="", name="leader.replication.throttled.replicas", value="0:1,1:2"),
         0, {}),
        (ConfigRecord(resource_type=4, resource_name="7", name="advertised.listeners", value="A://b1.example:9092"), 0,
         {"value": "text:NAME"}),
        (ConfigRecord(resource_type=16, resource_name="mine", name="match", value="client_id=ours"), 0,
         {"resource_name": "subscription:NAME", "value": "text:NAME"}),
        (ConfigRecord(resource_type=32, resource_name="readers", name="consumer.session.timeout.ms", value=None), 0,
         {"resource_name": "group:NAME"}),
        (ConfigRecord(resource_type=4, resource_name="7", name="ssl.keystore.password", value="open sesame"), 0,
         {"value": "(redacted)"}),
        (ConfigRecord(resource_type=4, resource_name="7", name="our.plugin", value="b1.example"), 0,
         {"name": "text:NAME", "value": "(redacted)"}),
        (AccessControlEntryRecord(resource_type=5, resource_name="ours", principal="User:al:ice", host="b1"), 0,
         {"resource_name": "transaction:NAME", "principal": "User:user:NAME", "host": "host:NAME"}),
        (AccessControlEntryRecord(resource_type=4, resource_name="kafka-cluster", principal="alice"), 0,
         {"principal": "user:NAME"}),
        (UserScramCredentialRecord(name="alice", salt=b"abc", stored_key=b"de", server_key=b"f", iterations=4096), 0,
         {"name": "user:NAME", "salt": bytes(3), "stored_key": bytes(2), "server_key": bytes(1)}),
        (DelegationTokenRecord(owner="User:alice", requester="bob", renewers=("User:c",), max_timestamp=9),
         0, {"owner": "User:user:NAME", "requester": "user:NAME", "renewers": ("User:user:NAME",)}),
        (RemoveDelegationTokenRecord(token_id="t"), 0, {"token_id": "token:NAME"}),
    ],
)  # fmt: skip
def test_what_is_replaced(record: Message, version: int, changed: dict[str, Any]) -> None:
    assert rewritten(record, version, rename=rename) == attrs.evolve(record, **changed)


def test_names_stay_without_pseudonyms_but_in_tokens() -> None:
    token = DelegationTokenRecord(owner="User:alice", requester="bob", renewers=("User:c",), token_id="t")
    hidden = {"owner": "User:(redacted)", "requester": "(redacted)", "renewers": ("User:(redacted)",)}
    assert rewritten(token) == attrs.evolve(token, **hidden)
    user = UserScramCredentialRecord(name="alice", salt=b"abc")
    assert rewritten(user) == attrs.evolve(user, salt=bytes(3))
    assert rewritten(TopicRecord(name="orders")) == TopicRecord(name="orders")


def test_structs_within_records_are_rewritten() -> None:
    quota = ClientQuotaRecord(
        entity=tuple(EntityData(entity_type=type_, entity_name="x") for type_ in ("user", "client-id", "ip", "else")),
        key="producer_byte_rate", value=1.0,
    )  # fmt: skip
    made = [entity.entity_name for entity in rewritten(quota, rename=rename).entity]
    assert made == ["user:NAME", "client:NAME", "host:NAME", "text:NAME"]
    broker = RegisterBrokerRecord(rack="r1", end_points=(BrokerEndpoint(name="INSIDE", host="b1", port=9),))
    made = rewritten(broker, rename=rename)
    assert (made.rack, made.end_points[0].name, made.end_points[0].host) == ("rack:NAME", "INSIDE", "host:NAME")


@given(st.data())
def test_no_text_remains_that_is_not_kafkas(data: st.DataObject) -> None:
    """Of any record: what a field has that is not declared as Kafka's word is a pseudonym, a number or blank."""
    cls = data.draw(st.sampled_from(METADATA_TYPES))
    version = data.draw(st.sampled_from(versions_of(cls)))
    made = rewritten(data.draw(structs_of(cls, version)), version, rename=rename)
    assert [text for text in texts(made) if text and MARK not in text and text != "(redacted)"] == []


def texts(struct: Struct) -> list[str]:
    """The strings and keys of a struct that may have names or secrets, and its unknown tagged fields."""
    found = [f"unknown tag {tag}" for tag, _ in struct.unknown_tagged_fields]
    for name, spec in field_specs(type(struct)):
        value = getattr(struct, name)
        for one in (value or ()) if spec.array else (value,):
            if isinstance(one, Struct):
                found += texts(one)
            elif spec.type is Primitive.BYTES and one is not None:
                found.append(one.strip(b"\0").decode("latin1"))
            elif spec.type is Primitive.STRING and one is not None and spec.names is not Names.KAFKA:
                found.append(one)
    if isinstance(struct, ConfigRecord) and MARK not in struct.name:
        assert struct.name == "" or struct.resource_type == 8 or key_of(struct.resource_type, struct.name)
        found.remove(struct.name)
    if isinstance(struct, ConfigRecord) and struct.value and struct.value.lstrip("-").isdecimal():
        found.remove(struct.value)
    if isinstance(struct, (ConfigRecord, AccessControlEntryRecord)) and MARK not in struct.resource_name:
        assert struct.resource_name == "" or struct.resource_type in (0, 4) or struct.resource_name.isdecimal()
        found = [one for one in found if one != struct.resource_name]
    return found


def test_every_text_of_a_record_says_what_it_names() -> None:
    """A field whose declaration says nothing is any text: its values are replaced whole, which few fields should be."""
    plain = {
        f"{cls.__name__}.{name}"
        for cls in METADATA_RECORDS.values()
        for name, spec in field_specs(cls)
        if spec.type is Primitive.STRING and spec.names is Names.TEXT
    }
    assert plain == {"ConfigRecord.value", "BeginTransactionRecord.name", "AbortTransactionRecord.reason"}


def test_an_unknown_record_is_refused_or_a_no_op() -> None:
    unknown = UnknownRecord(4242, 0, b"\x01\x92\x21\x00secret")
    with pytest.raises(UnknownRecordError, match="Offset 7: a record of type 4242 and version 0 is unknown") as refused:
        rewritten(unknown)
    assert refused.value.offset == 7
    assert rewritten(unknown, lenient=True) == NoOpRecord()


def test_what_has_neither_names_nor_secrets_stays_byte_for_byte() -> None:
    batch = RecordBatch.of(7, 1, 1000, [ApiMessageAndVersion(NoOpRecord(), 0)] * 3)
    rewriter = Rewriter(rename=rename)
    assert rewriter.batch(batch) == batch
    assert (rewriter.blanked, rewriter.unknown_records, rewriter.unknown_tagged_fields) == ({}, 0, 0)
