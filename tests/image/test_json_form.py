from __future__ import annotations

import json

from hypothesis import given
from rpds import HashTrieMap

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.client_quotas_image import ClientQuotaEntity, ClientQuotaImage, ClientQuotasImage
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.image.metadata_image import MetadataImage, image_to_json
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.image.scram_image import ScramImage, mechanism_name
from kraftlake.records import metadata_records as r
from tests.histories import histories

HERE = MetadataProvenance(offset=7, epoch=3)


def image_of(*messages):
    delta = MetadataDelta(MetadataImage.EMPTY)
    for message in messages:
        delta.replay(message)
    return delta.apply(HERE)


SCRAM = r.UserScramCredentialRecord(
    name="alice", mechanism=1, salt=b"\x01", stored_key=b"\x02", server_key=b"\x03", iterations=4096
)
TOKEN = r.DelegationTokenRecord(
    owner="User:alice", requester="User:bob", renewers=("User:c",), issue_timestamp=1, max_timestamp=2,
    expiration_timestamp=3, token_id="t",
)  # fmt: skip


def test_the_empty_image_has_every_key_and_nothing_in_it():
    assert image_to_json(MetadataImage.EMPTY) == {
        "offset": -1,
        "epoch": -1,
        "metadataVersion": None,
        "features": {},
        "elrEnabled": False,
        "brokers": {},
        "controllers": {},
        "topics": {},
        "configs": {},
        "clientQuotas": [],
        "nextProducerId": -1,
        "acls": {},
        "scram": {},
        "delegationTokens": {},
    }


def test_scram_keys_are_shown_only_on_demand():
    image = image_of(SCRAM)
    shown = {"salt": "01", "storedKey": "02", "serverKey": "03", "iterations": 4096}
    assert image_to_json(image, show_secrets=True)["scram"] == {"SCRAM-SHA-256": {"alice": shown}}
    hidden = dict.fromkeys(("salt", "storedKey", "serverKey"), "(redacted)")
    assert image_to_json(image)["scram"] == {"SCRAM-SHA-256": {"alice": {**hidden, "iterations": 4096}}}


def test_configs_that_may_be_secret_are_shown_only_on_demand():
    secret = r.ConfigRecord(resource_type=4, resource_name="", name="ssl.keystore.password", value="pw")
    public = r.ConfigRecord(resource_type=2, resource_name="foo", name="retention.ms", value="1")
    image = image_of(secret, public)
    assert image_to_json(image)["configs"] == {
        "BROKER": {"": {"ssl.keystore.password": "(redacted)"}},
        "TOPIC": {"foo": {"retention.ms": "1"}},
    }
    assert image_to_json(image, show_secrets=True)["configs"]["BROKER"][""] == {"ssl.keystore.password": "pw"}


def test_delegation_tokens_are_shown_only_on_demand():
    image = image_of(TOKEN)
    hidden = dict.fromkeys(image_to_json(image)["delegationTokens"]["t"], "(redacted)") | {"tokenId": "t"}
    assert image_to_json(image)["delegationTokens"] == {"t": hidden}
    assert "alice" not in json.dumps(image_to_json(image))
    assert image_to_json(image, show_secrets=True)["delegationTokens"] == {
        "t": {
            "tokenId": "t",
            "owner": "User:alice",
            "requester": "User:bob",
            "renewers": ["User:c"],
            "issueTimestamp": 1,
            "maxTimestamp": 2,
            "expiryTimestamp": 3,
        }
    }


def test_secrets_are_in_no_repr():
    image = image_of(SCRAM, r.ConfigRecord(resource_type=4, resource_name="1", name="x.password", value="hunter2"))
    assert "hunter2" not in repr(image)
    assert repr(SCRAM.salt) not in repr(image.scram)


def test_quota_entities_come_in_the_order_of_their_text():
    entities = [
        (("client-id", "c1"), ("user", "alice")),
        (("client-id", "cäé"),),
        (("client-id", None), ("user", None)),
        (("client-id", None),),
        (("ip", None),),
        (("user", "alice"),),
    ]
    quota = ClientQuotaImage(HashTrieMap({"k": 1.0}))
    image = MetadataImage(
        client_quotas=ClientQuotasImage(entities=HashTrieMap({ClientQuotaEntity(e): quota for e in reversed(entities)}))
    )
    assert [q["entity"] for q in image_to_json(image)["clientQuotas"]] == [dict(entity) for entity in entities]


def test_types_that_kafka_does_not_know_keep_their_number():
    assert ConfigResource(99, "x").type_name == "UNKNOWN(99)"
    assert mechanism_name(7) == "UNKNOWN(7)"
    assert image_to_json(MetadataImage(scram=ScramImage()))["scram"] == {}


@given(histories())
def test_every_image_is_json_and_redacting_only_hides(history):
    image = image_of(*(record.message for record in history))
    shown, hidden = image_to_json(image, show_secrets=True), image_to_json(image)
    assert json.loads(json.dumps(shown)) == shown
    assert _skeleton(shown, hidden) == hidden


def _skeleton(shown, hidden):
    """`shown` with what `hidden` has redacted."""
    if hidden == "(redacted)":
        return hidden
    if isinstance(shown, dict) and isinstance(hidden, dict):
        return {key: _skeleton(value, hidden.get(key)) for key, value in shown.items()}
    return shown
