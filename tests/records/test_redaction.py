from __future__ import annotations

import json

import pytest

from kraftlake.records.batch import RecordBatch
from kraftlake.records.json_form import to_json
from kraftlake.records.log_record import log_records
from kraftlake.records.metadata_records import (
    ConfigRecord,
    DelegationTokenRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from kraftlake.records.redaction import REDACTED, is_sensitive_config, redact_record_json
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.settings.tables import CONFIGS
from tests.records.sample_logs import LOG_FILES, whole_batches

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.mark.parametrize(
    ("resource_type", "name", "sensitive"),
    [
        (TOPIC, "retention.ms", False),
        (TOPIC, "log.retention.ms", True),
        (BROKER, "log.retention.ms", False),
        (BROKER, "ssl.keystore.location", False),
        (BROKER, "ssl.keystore.password", True),
        (BROKER, "ssl.keystore.key", True),
        (BROKER, "sasl.jaas.config", True),
        (BROKER, "delegation.token.secret.key", True),
        (BROKER, "listener.name.internal.ssl.key.password", True),
        (BROKER, "my.own.plugin.setting", True),
        (BROKER, "leader.replication.throttled.rate", False),
        (BROKER, "follower.replication.throttled.rate", False),
        (BROKER, "replica.alter.log.dirs.io.max.bytes.per.second", False),
        (TOPIC, "leader.replication.throttled.rate", True),
        (BROKER, "listener.name.internal.ssl.keystore.location", False),
        (BROKER, "listener.name.internal.ssl.keystore.password", True),
        (BROKER, "my.listener.name.internal.ssl.keystore.location", True),
        (TOPIC, "listener.name.internal.retention.ms", True),
        (CLIENT_METRICS, "interval.ms", False),
        (GROUP, "consumer.session.timeout.ms", False),
        (LOGGER, "kafka.server", True),
        (0, "retention.ms", True),
        (99, "retention.ms", True),
    ],
)
def test_passwords_and_unknown_configs_are_sensitive(resource_type: int, name: str, sensitive: bool) -> None:
    assert is_sensitive_config(resource_type, name) is sensitive


def test_no_known_name_is_that_of_a_password() -> None:
    public = {key for kind, keys in CONFIGS.items() for key in keys if not is_sensitive_config(kind, key)}
    assert len(public) > 400
    words = (
        "password", "jaas", "secret", "passphrase", "certificate.chain", "keystore.key", "truststore.certificates",
    )  # fmt: skip
    assert [name for name in public if any(word in name for word in words)] == []


def test_the_keys_of_scram_credentials_are_redacted() -> None:
    scram = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"sss", stored_key=b"kkk", server_key=b"vvv", iterations=4096
    )
    assert redact_record_json("USER_SCRAM_CREDENTIAL_RECORD", to_json(scram, 0)) == {
        "name": "alice",
        "mechanism": 1,
        "salt": REDACTED,
        "storedKey": REDACTED,
        "serverKey": REDACTED,
        "iterations": 4096,
    }


def test_of_a_delegation_token_only_the_id_is_shown() -> None:
    token = to_json(DelegationTokenRecord(token_id="t", owner="User:a"), 0)
    redacted = redact_record_json("DELEGATION_TOKEN_RECORD", token)
    assert redacted.keys() == token.keys()
    assert redacted.pop("tokenId") == "t"
    assert set(redacted.values()) == {REDACTED}


def test_config_values_are_redacted_by_their_name() -> None:
    def redacted(name: str, value: str | None) -> object:
        record = ConfigRecord(resource_type=BROKER, resource_name="1", name=name, value=value)
        return redact_record_json("CONFIG_RECORD", to_json(record, 0))["value"]

    assert redacted("log.retention.ms", "7") == "7"
    assert redacted("ssl.key.password", "hunter2") == REDACTED
    assert redacted("ssl.key.password", None) is None


def test_what_nobody_knows_is_redacted() -> None:
    assert redact_record_json("UNKNOWN", "aHVudGVyMg==") == REDACTED


def test_other_records_are_left_alone() -> None:
    data = to_json(TopicRecord(name="a"), 0)
    assert redact_record_json("TOPIC_RECORD", data) is data


def test_the_given_data_are_not_changed() -> None:
    data = to_json(UserScramCredentialRecord(salt=b"sss"), 0)
    redact_record_json("USER_SCRAM_CREDENTIAL_RECORD", data)
    assert data["salt"] == "c3Nz"


def test_no_secret_of_the_samples_gets_through() -> None:
    secrets: set[str] = set()
    shown = []
    for path in LOG_FILES:
        for batch in whole_batches(path):
            for record in log_records(batch):
                data = record.to_json()["data"]
                if record.type == "USER_SCRAM_CREDENTIAL_RECORD":
                    secrets |= {data["salt"], data["storedKey"], data["serverKey"]}
                shown.append(json.dumps(redact_record_json(record.type, data)))
    assert len(secrets) > 50
    everything = "\n".join(shown)
    assert not [secret for secret in secrets if secret in everything]


def test_a_batch_does_not_show_its_values() -> None:
    config = ConfigRecord(resource_type=BROKER, name="ssl.key.password", value="hunter2")
    assert "hunter2" not in repr(RecordBatch.of(0, 0, 0, [ApiMessageAndVersion(config, 0)]))
