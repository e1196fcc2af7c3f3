"""Quotas, ACLs, SCRAM credentials and delegation tokens: records and refusals."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from kraftlake.controller.access.acls import AclFilter, create_acls, delete_acls
from kraftlake.controller.access.client_quotas import QuotaAlteration, alter_client_quotas
from kraftlake.controller.access.delegation_tokens import (
    create_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
    sweep_expired_delegation_tokens,
)
from kraftlake.controller.access.scram import ScramDeletion, ScramUpsertion, alter_user_scram_credentials
from kraftlake.controller.errors import ControllerApiError
from kraftlake.image.acls_image import StandardAcl
from kraftlake.image.client_quotas_image import ClientQuotaEntity
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records import metadata_records as r
from kraftlake.records.metadata_version import from_feature_level
from tests.controller.controlled_cluster import ControlledCluster

ALICE = (("user", "alice"),)


def alter_quota(cluster: ControlledCluster, entity: Any, *ops: tuple[str, float | None]) -> ErrorCode:
    alteration = QuotaAlteration(entity=entity, ops=ops)
    (error,) = cluster.run(lambda state: alter_client_quotas(state, [alteration])).values()
    return error.error


def test_a_quota_is_set_once_changed_and_removed() -> None:
    cluster = ControlledCluster()
    assert alter_quota(cluster, ALICE, ("producer_byte_rate", 100.0)) is ErrorCode.NONE
    data = (r.EntityData(entity_type="user", entity_name="alice"),)
    assert cluster.added == [r.ClientQuotaRecord(entity=data, key="producer_byte_rate", value=100.0, remove=False)]
    alter_quota(cluster, ALICE, ("producer_byte_rate", 100.0))
    assert cluster.added == [], "it has that value already"
    alter_quota(cluster, ALICE, ("producer_byte_rate", None), ("consumer_byte_rate", None))
    assert len(cluster.added) == 1
    assert ClientQuotaEntity(ALICE) not in cluster.image.client_quotas.entities


@pytest.mark.parametrize(
    ("entity", "ops"),
    [
        ((), [("producer_byte_rate", 1.0)]),
        ((("group", "a"),), [("producer_byte_rate", 1.0)]),
        ((("user", ""),), [("producer_byte_rate", 1.0)]),
        ((("ip", "1.2.3.4"), ("user", "a")), [("connection_creation_rate", 1.0)]),
        ((("ip", "1.2.3.400"),), [("connection_creation_rate", 1.0)]),
        ((("ip", "1.2.3.4"),), [("producer_byte_rate", 1.0)]),
        ((("ip", None),), [("connection_creation_rate", float(2**31))]),
        (ALICE, [("connection_creation_rate", 1.0)]),
        (ALICE, [("producer_byte_rate", 0.0)]),
        (ALICE, [("producer_byte_rate", float("inf"))]),
        (ALICE, [("producer_byte_rate", 1.5)]),
        (ALICE, [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)]),
    ],
)
def test_an_invalid_quota_is_refused(entity: Any, ops: Any) -> None:
    cluster = ControlledCluster()
    assert alter_quota(cluster, entity, *ops) is ErrorCode.INVALID_REQUEST
    assert cluster.added == []


@pytest.mark.parametrize("address", ["1.2.3.4", "10.1", "[::1]", "::ffff:1.2.3.4", "broker-1.example.org", "localhost"])
def test_an_address_quota_accepts_every_form_that_java_accepts(address: str) -> None:
    cluster = ControlledCluster()
    assert alter_quota(cluster, (("ip", address),), ("connection_creation_rate", 1.0)) is ErrorCode.NONE


@pytest.mark.parametrize("address", ["1.2.3.256", "1.2.3.4.5", "0x7f.1", "a.0x1f", "[10.0.0.1]", "::1%", "1:2"])
def test_a_quota_of_an_invalid_address_is_refused(address: str) -> None:
    cluster = ControlledCluster()
    assert alter_quota(cluster, (("ip", address),), ("connection_creation_rate", 1.0)) is ErrorCode.INVALID_REQUEST


def test_more_quotas_than_a_batch_holds_are_refused_even_if_only_validated() -> None:
    cluster = ControlledCluster()
    many = [QuotaAlteration(entity=(("user", f"u{n}"),), ops=[("request_percentage", 1.5)]) for n in range(10_001)]
    with pytest.raises(ControllerApiError) as refusal:
        cluster.run(lambda state: alter_client_quotas(state, many, validate_only=True))
    assert refusal.value.error is ErrorCode.POLICY_VIOLATION


def test_a_repeated_entity_applies_its_first_alteration_and_is_answered_with_the_refusal() -> None:
    cluster = ControlledCluster()
    twice = [QuotaAlteration(entity=ALICE, ops=[("request_percentage", value)]) for value in (1.5, 2.5)]
    answers = cluster.run(lambda state: alter_client_quotas(state, twice))
    assert [answer.error for answer in answers.values()] == [ErrorCode.INVALID_REQUEST]
    assert len(cluster.added) == 1


def acl(**changes: Any) -> StandardAcl:
    fields: dict[str, Any] = {
        "resource_type": 2, "resource_name": "orders", "pattern_type": 3, "principal": "User:alice", "host": "*",
        "operation": 3, "permission_type": 3,
    }  # fmt: skip
    return StandardAcl(**(fields | changes))


def test_an_acl_is_created_once_and_deleted_by_filters() -> None:
    cluster = ControlledCluster()
    rules = [acl(), acl(), acl(resource_name="ord", pattern_type=4), acl(resource_name="*"), acl(resource_type=3)]
    answers = cluster.run(lambda state: create_acls(state, rules))
    assert {answer.error for answer in answers} == {ErrorCode.NONE}
    assert len(cluster.added) == 4
    meant = AclFilter(resource_type=2, resource_name="orders", pattern_type=2)
    (deleted,) = cluster.run(lambda state: delete_acls(state, [meant]))
    assert set(deleted.acls) == {rules[0], rules[2], rules[3]}
    assert list(cluster.image.acls.acls.values()) == [rules[4]]
    (nothing,) = cluster.run(lambda state: delete_acls(state, [AclFilter(operation=0)]))
    assert nothing.error.error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"resource_type": 1}, ErrorCode.INVALID_REQUEST),
        ({"pattern_type": 2}, ErrorCode.INVALID_REQUEST),
        ({"operation": 0}, ErrorCode.INVALID_REQUEST),
        ({"permission_type": 1}, ErrorCode.INVALID_REQUEST),
        ({"resource_name": ""}, ErrorCode.INVALID_REQUEST),
        ({"principal": "alice"}, ErrorCode.INVALID_REQUEST),
        ({"host": ""}, ErrorCode.INVALID_REQUEST),
        ({"host": "10.0.0.0/99"}, ErrorCode.INVALID_REQUEST),
        ({"host": "10.0.0.0/255.0.0.0"}, ErrorCode.INVALID_REQUEST),
        ({"resource_type": 4, "resource_name": "cluster"}, ErrorCode.INVALID_REQUEST),
        ({"resource_type": 4, "resource_name": "kafka-cluster"}, ErrorCode.NONE),
        ({"host": "10.0.0.0/8"}, ErrorCode.NONE),
        ({"host": "010.0.0.0/8"}, ErrorCode.NONE),
        ({"host": "[fe80::]/32"}, ErrorCode.NONE),
    ],
)
def test_an_invalid_acl_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    cluster = ControlledCluster()
    (answer,) = cluster.run(lambda state: create_acls(state, [acl(**changes)]))
    assert answer.error is error


def test_address_ranges_need_their_metadata_version() -> None:
    cluster = ControlledCluster(version=from_feature_level(31))
    (answer,) = cluster.run(lambda state: create_acls(state, [acl(host="10.0.0.0/8")]))
    assert answer.error is ErrorCode.UNSUPPORTED_VERSION


def test_a_scram_credential_is_that_of_the_rfc() -> None:
    cluster = ControlledCluster()
    upsertion = ScramUpsertion.of_password("alice", 1, "secret", b"salt", 4096)
    cluster.run(lambda state: alter_user_scram_credentials(state, [], [upsertion]))
    (record,) = cluster.added
    assert isinstance(record, r.UserScramCredentialRecord)
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096)
    assert record.server_key == hmac.digest(salted, b"Server Key", "sha256")
    assert record.stored_key == hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    answers = cluster.run(
        lambda state: alter_user_scram_credentials(state, [ScramDeletion(name="alice", mechanism=1)], [])
    )
    assert answers["alice"].error is ErrorCode.NONE
    assert cluster.image.scram.is_empty()


def test_a_scram_credential_without_a_salted_password_is_refused_as_kafka_does() -> None:
    cluster = ControlledCluster()
    empty = ScramUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"")
    answers = cluster.run(lambda state: alter_user_scram_credentials(state, [], [empty]))
    assert answers["alice"].error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.added == []


@pytest.mark.parametrize(
    ("deletion", "upsertion", "error"),
    [
        (ScramDeletion(name="alice", mechanism=1), None, ErrorCode.RESOURCE_NOT_FOUND),
        (ScramDeletion(name="", mechanism=1), None, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (ScramDeletion(name="alice", mechanism=9), None, ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (None, 4095, ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (None, 16385, ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_an_invalid_credential_is_refused(
    deletion: ScramDeletion | None, upsertion: int | None, error: ErrorCode
) -> None:
    cluster = ControlledCluster()
    deletions = [] if deletion is None else [deletion]
    upsertions = (
        []
        if upsertion is None
        else [ScramUpsertion(name="alice", mechanism=1, iterations=upsertion, salt=b"s", salted_password=b"p")]
    )
    (answer,) = cluster.run(lambda state: alter_user_scram_credentials(state, deletions, upsertions)).values()
    assert answer.error is error
    assert cluster.added == []


def test_a_user_that_is_changed_twice_is_refused() -> None:
    cluster = ControlledCluster()
    twice = [ScramUpsertion.of_password("alice", mechanism, "s", b"salt", 4096) for mechanism in (1, 2)]
    answers = cluster.run(lambda state: alter_user_scram_credentials(state, [], twice))
    assert answers["alice"].error is ErrorCode.DUPLICATE_RESOURCE
    assert cluster.added == []


def with_tokens() -> ControlledCluster:
    return ControlledCluster(delegation_token_secret_key="key")


def test_a_delegation_token_is_created_renewed_and_expired() -> None:
    cluster = with_tokens()
    created = cluster.run(
        lambda state: create_delegation_token(
            state, requester="User:alice", renewers=["User:bob"], max_lifetime_ms=10_000
        )
    )
    token = created.token
    assert (token.max_timestamp - token.issue_timestamp, token.expiry_timestamp) == (10_000, token.max_timestamp)
    assert created.hmac == hmac.digest(b"key", token.token_id.encode(), "sha512")
    renew = lambda principal: cluster.run(  # noqa: E731
        lambda state: renew_delegation_token(state, principal=principal, token_hmac=created.hmac, renew_period_ms=5)
    )
    assert renew("User:bob") == cluster.clock.milliseconds() + 5
    with pytest.raises(ControllerApiError) as refused:
        renew("User:eve")
    assert refused.value.error is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    cluster.clock.advance(6)
    with pytest.raises(ControllerApiError) as refused:
        renew("User:alice")
    assert refused.value.error is ErrorCode.DELEGATION_TOKEN_EXPIRED
    cluster.run(lambda state: expire_delegation_token(state, principal="User:alice", token_hmac=created.hmac))
    assert cluster.added == [r.RemoveDelegationTokenRecord(token_id=token.token_id)]
    with pytest.raises(ControllerApiError) as refused:
        renew("User:alice")
    assert refused.value.error is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_expired_tokens_are_swept() -> None:
    cluster = with_tokens()
    for _ in range(3):
        cluster.run(lambda state: create_delegation_token(state, requester="User:alice", max_lifetime_ms=1_000))
    assert cluster.run(sweep_expired_delegation_tokens) is False
    assert cluster.added == []
    cluster.clock.advance(1_001)
    cluster.run(sweep_expired_delegation_tokens)
    assert cluster.image.delegation_tokens.is_empty()


def test_without_a_secret_key_there_are_no_tokens() -> None:
    with pytest.raises(ControllerApiError) as refused:
        ControlledCluster().run(lambda state: create_delegation_token(state, requester="User:alice"))
    assert refused.value.error is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    with pytest.raises(ControllerApiError) as refused:
        with_tokens().run(lambda state: create_delegation_token(state, requester="User:alice", renewers=["Group:x"]))
    assert refused.value.error is ErrorCode.INVALID_PRINCIPAL_TYPE
