"""Logins at a listener: who comes in, who does not, and what those outside learn."""

from __future__ import annotations

import time

import pytest
from kio.schema.metadata.v12.request import MetadataRequest

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.scram import scram_messages
from kraftlake.records import metadata_records as r
from kraftlake.server.requests.login_users import LoginUsers
from tests.server.requests.login_wire import (
    WRONG,
    LoginClient,
    listening,
    old_authenticate,
    old_handshake,
    security,
    upsertion,
    users,
)
from tests.waiting import unless_paused, wait_for


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
def test_a_user_logs_in_by_each_mechanism_and_its_requests_are_its_own(mechanism: str) -> None:
    scram = [] if mechanism == "PLAIN" else [upsertion("alice", "alice-secret", mechanism)]
    known, _ = users(*scram)
    with listening(security(), known) as listener, LoginClient(listener.port) as client:
        assert client.versions() == ErrorCode.NONE
        assert client.log_in(mechanism, "alice", "alice-secret").error_code == ErrorCode.NONE
        assert [client.who() for _ in range(3)] == ["User:alice"] * 3
        assert client.hands(mechanism).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.say(b"").error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert client.who() == "User:alice"
        assert (listener.authentications.successful, listener.authentications.failed) == (1, 0)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"])
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_no_one_learns_whether_the_user_or_the_password_is_wrong(mechanism: str, user: str) -> None:
    known, _ = users(*([] if mechanism == "PLAIN" else [upsertion("alice", "alice-secret", mechanism)]))
    with listening(security(), known) as listener, LoginClient(listener.port) as client:
        answer = client.log_in(mechanism, user, "wrong")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == f"{WRONG} {mechanism}"
        with pytest.raises(EOFError):
            client.who()
        assert (listener.authentications.successful, listener.authentications.failed) == (0, 1)


def test_a_changed_password_counts_at_once_and_a_removed_user_is_out_at_its_next_login() -> None:
    known, cluster = users(upsertion("bob", "first"))
    with listening(security(), known) as listener:
        with LoginClient(listener.port) as client:
            assert client.log_in("SCRAM-SHA-256", "bob", "first").error_code == ErrorCode.NONE
            cluster.change(upsertion("bob", "second"))
            assert client.who() == "User:bob", "a session goes on"
        outcomes = []
        for password in ("first", "second"):
            with LoginClient(listener.port) as client:
                outcomes.append(client.log_in("SCRAM-SHA-256", "bob", password).error_code)
        assert outcomes == [ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.NONE]
        cluster.change(r.RemoveUserScramCredentialRecord(name="bob", mechanism=1))
        with LoginClient(listener.port) as client:
            answer = client.log_in("SCRAM-SHA-256", "bob", "second")
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_an_unknown_mechanism_is_answered_with_the_known_ones() -> None:
    known, _ = users()
    with listening(security(), known) as listener, LoginClient(listener.port) as client:
        answer = client.hands("GSSAPI")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert tuple(answer.mechanisms) == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
        with pytest.raises(EOFError):
            client.versions()


@pytest.mark.parametrize("begin", ["request", "versions", "handshake"])
def test_a_request_before_the_login_ends_the_connection(begin: str) -> None:
    known, _ = users()
    asks = MetadataRequest(
        topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )  # fmt: skip
    with listening(security(), known) as listener, LoginClient(listener.port) as client:
        if begin == "versions":
            client.versions()
            with pytest.raises(EOFError):
                client.versions()
            return
        if begin == "handshake":
            client.hands("PLAIN")
            client.ask(asks)
        with pytest.raises(EOFError):
            client.ask(asks)
        wait_for(lambda: listener.authentications.failed == 1, "the failure to be counted")


def test_a_long_message_before_the_login_ends_the_connection() -> None:
    known, _ = users()
    with (
        listening(security(sasl_server_max_receive_size="1000"), known) as listener,
        LoginClient(listener.port) as client,
    ):
        client.hands("PLAIN")
        with pytest.raises(EOFError):
            client.say(bytes(1000))
        with LoginClient(listener.port) as other:
            assert other.log_in("PLAIN", "alice", "alice-secret").error_code == ErrorCode.NONE
            assert other.who() == "User:alice"


def test_old_clients_send_bare_messages() -> None:
    known, _ = users(upsertion("bob", "secret"))
    with listening(security(), known) as listener:
        with LoginClient(listener.port) as client:
            client.exchange(old_handshake("PLAIN"))
            assert client.exchange(b"\0alice\0alice-secret") == b""
            assert client.who() == "User:alice"
        with LoginClient(listener.port) as client:
            client.exchange(old_handshake("SCRAM-SHA-256"))
            messages = scram_messages("SCRAM-SHA-256", user="bob", password="secret", nonce="n")
            challenge = client.exchange(next(messages))
            assert client.exchange(messages.send(challenge)).startswith(b"v=")
            assert client.who() == "User:bob"
        with LoginClient(listener.port) as client:
            client.exchange(old_handshake("PLAIN"))
            with pytest.raises(EOFError):
                client.exchange(b"\0alice\0wrong")


def test_the_nonce_of_a_server_is_of_no_use_to_another_login() -> None:
    known, _ = users(upsertion("bob", "secret"))
    with listening(security(), known) as listener:
        with LoginClient(listener.port) as client:
            client.hands("SCRAM-SHA-256")
            messages = scram_messages("SCRAM-SHA-256", user="bob", password="secret", nonce="n")
            first = next(messages)
            last = messages.send(client.say(first).auth_bytes)
            assert client.say(last).error_code == ErrorCode.NONE
        with LoginClient(listener.port) as replayed:
            replayed.hands("SCRAM-SHA-256")
            replayed.say(first)
            assert replayed.say(last).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_refusal_comes_after_the_delay_and_others_are_served_meanwhile() -> None:
    known, _ = users()
    asked = security(connection_failed_authentication_delay_ms="700")
    with listening(asked, known) as listener, LoginClient(listener.port) as client:
        begun = time.monotonic()
        with LoginClient(listener.port) as other:
            assert other.log_in("PLAIN", "alice", "alice-secret").error_code == ErrorCode.NONE
            client.hands("PLAIN")
            client.socket.setblocking(True)
            assert client.say(b"\0alice\0wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert time.monotonic() - begun >= 0.7
            assert other.who() == "User:alice"


def test_before_the_users_are_loaded_no_one_is_refused_by_name() -> None:
    with listening(security(), LoginUsers()) as listener, LoginClient(listener.port) as client:
        client.hands("SCRAM-SHA-256")
        with pytest.raises(EOFError):
            client.say(b"n,,n=bob,r=nonce")
        with LoginClient(listener.port) as other:
            assert other.log_in("PLAIN", "alice", "alice-secret").error_code == ErrorCode.NONE


@unless_paused(0.1)
def test_a_session_that_ends_is_renewed_by_the_same_user_or_closed() -> None:
    known, _ = users(upsertion("alice", "alice-secret"))
    asked = security(connections_max_reauth_ms="1500")
    with listening(asked, known) as listener:
        with LoginClient(listener.port) as client, LoginClient(listener.port) as overstays:
            for one in (client, overstays):
                answer = one.log_in("PLAIN", "alice", "alice-secret")
                assert answer.session_lifetime.total_seconds() == 1.5
            time.sleep(1.1)
            assert client.log_in("PLAIN", "alice", "alice-secret").error_code == ErrorCode.NONE
            assert client.hands("PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE, "at most once a second"
            time.sleep(0.6)
            assert client.who() == "User:alice"
            with pytest.raises(EOFError):
                overstays.who()
            counts = listener.authentications
            assert (counts.successful, counts.reauthenticated, counts.expired) == (2, 1, 1)
            time.sleep(0.5)
            answer = client.log_in("PLAIN", "eve", "eve-secret")
            assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert answer.error_message == f"{WRONG.replace('during auth', 'during re-auth')} PLAIN"
            assert counts.failed_again == 1
        with LoginClient(listener.port) as client:
            client.log_in("PLAIN", "alice", "alice-secret")
            assert client.hands("SCRAM-SHA-256").error_code == ErrorCode.NONE
            with pytest.raises(EOFError):
                client.say(b"n,,n=alice,r=nonce")


def test_a_delegation_token_stands_for_its_owner_until_it_expires() -> None:
    record = r.DelegationTokenRecord(
        owner="User:carol", requester="User:carol", renewers=(), issue_timestamp=0, max_timestamp=2**50,
        expiration_timestamp=round(time.time() * 1000) + 60_000, token_id="t1",
    )  # fmt: skip
    known, cluster = users(record, secret_key="the key")
    password = token_password(cluster, "t1", "the key")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        with listening(security(), known) as listener:
            with LoginClient(listener.port) as client:
                answer = client.log_in(mechanism, "t1", password, tokenauth="true")
                assert 50 < answer.session_lifetime.total_seconds() <= 60
                assert client.who() == "User:carol by token"
            for user, secret, extensions in (
                ("t1", password, {}), ("t1", "wrong", {"tokenauth": "true"}), ("t2", password, {"tokenauth": "true"}),
            ):  # fmt: skip
                with LoginClient(listener.port) as client:
                    answer = client.log_in(mechanism, user, secret, **extensions)
                    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    cluster.change(r.RemoveDelegationTokenRecord(token_id="t1"))
    with listening(security(), known) as listener, LoginClient(listener.port) as client:
        answer = client.log_in("SCRAM-SHA-256", "t1", password, tokenauth="true")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def token_password(cluster: object, token_id: str, key: str) -> str:
    from base64 import b64encode

    token = cluster.image.delegation_tokens.tokens[token_id]  # type: ignore[attr-defined]
    return b64encode(token.hmac(key)).decode()


def test_authenticate_of_version_1_has_the_lifetime_too() -> None:
    known, _ = users()
    with listening(security(connections_max_reauth_ms="5000"), known) as listener, LoginClient(listener.port) as client:
        client.hands("PLAIN")
        assert client.exchange(old_authenticate(b"\0alice\0alice-secret"))[-8:] == (5000).to_bytes(8, "big")
