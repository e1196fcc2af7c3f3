"""Delegation tokens of clients that log in, from their creation to their expiry: at our nodes as at Kafka's."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_server import BrokerServer
from kraftlake.server.node_config import STANDARD_AUTHORIZER, ListenerAddress
from kraftlake.server.requests.messages import response_in
from tests.interop.kafka_tools import KafkaTools
from tests.kafka_node import started_node
from tests.server.broker.lake_cluster import QUICK, LakeCluster, Member
from tests.server.matrix.wire import Wire, frame_of
from tests.waiting import wait_for

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
USERS = ("alice", "bob", "carol", "erin", "admin")
SETTINGS = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin;User:ANONYMOUS",
    "delegation.token.secret.key": "a key of all nodes",
    "delegation.token.expiry.check.interval.ms": "300",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{user}="{user}-secret"' for user in USERS)
        + ";"
    ),
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}
_HOUR = 3_600_000
_NO_OWNER = {"owner_principal_type": None, "owner_principal_name": None, "renewers": [], "max_lifetime": -1}


@attrs.define
class Side:
    """A cluster by the ports of its listeners, and the users' connections."""

    sasl: int
    plaintext: int
    _wires: dict[str, Wire] = attrs.field(factory=dict)

    def ask(self, user: str, api: str, version: int, **values: Any) -> Any:
        """The answer to a user's request; nobody's goes over PLAINTEXT."""
        if user not in self._wires:
            self._wires[user] = self._logged_in(user) if user else Wire("127.0.0.1", self.plaintext)
        frame = frame_of(api, version, values)
        return response_in(frame, self._wires[user].exchange(frame) or b"")

    def _logged_in(self, user: str) -> Wire:
        wire = Wire("127.0.0.1", self.sasl)
        assert not wire.ask("sasl_handshake", 1, {"mechanism": "PLAIN"}).error_code
        login = {"auth_bytes": f"\0{user}\0{user}-secret".encode()}
        answer = wire.ask("sasl_authenticate", 2, login)
        assert not answer.error_code, answer
        return wire

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    def create(self, user: str, **values: Any) -> Any:
        return self.ask(user, "create_delegation_token", 3, **{**_NO_OWNER, **values})

    def seen(self, user: str, *owners: str) -> set[str]:
        """The ids of the tokens that a user sees, of all owners if none is named."""
        named = [{"principal_type": "User", "principal_name": name} for name in owners]
        answer = self.ask(user, "describe_delegation_token", 3, owners=named or None)
        assert not answer.error_code, answer
        return {one.token_id for one in answer.tokens}


@contextmanager
def on_a_lake(folder: Path) -> Iterator[Side]:
    """A broker and a controller of ours."""
    cluster = LakeCluster(folder)
    try:
        cluster.start_controller(101, **SETTINGS)
        config = BrokerConfig(
            broker_id=1, lake=str(cluster.lake), log_dirs=(str(folder / "broker"),),
            listener=ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=0),
            more_listeners=(ListenerAddress(name="SASL", host="127.0.0.1", port=0),),
            settings={
                **QUICK, **SETTINGS, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
            },
        )  # fmt: skip
        cluster.members[1] = Member(lambda stop: BrokerServer(config, stop=stop))
        cluster.await_unfenced(1)
        plaintext, sasl = (listener.port for listener in cluster.members[1].server.listeners)
        yield Side(sasl, plaintext)
    finally:
        cluster.stop()


@contextmanager
def of_kafka(folder: Path) -> Iterator[Side]:
    """A node of Kafka's."""
    more = {"inter.broker.listener.name": "PLAINTEXT"}
    with started_node(folder, settings=SETTINGS | more, listeners={"SASL": "SASL_PLAINTEXT"}) as node:
        yield Side(node.more_listeners["SASL"][1], node.broker_port)


KINDS = [
    on_a_lake,
    pytest.param(
        of_kafka,
        marks=[pytest.mark.spark, pytest.mark.skipif(not LONG, reason="make test-long: a node of Kafka's")],
    ),
]


@pytest.fixture(params=KINDS)
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    start: Callable[[Path], Any] = request.param
    with start(tmp_path) as made:
        yield made
        made.close()


def acl(user: str, kind: int, name: str, operation: int) -> Mapping[str, Any]:
    return {
        "resource_type": kind, "resource_name": name, "resource_pattern_type": 3, "principal": f"User:{user}",
        "host": "*", "operation": operation, "permission_type": 3,
    }  # fmt: skip


def test_a_token_lives_until_it_expires_and_is_seen_by_whom_it_concerns(
    side: Side, capfd: pytest.CaptureFixture[str]
) -> None:
    for stranger in (side.create(""), side.ask("", "renew_delegation_token", 2, hmac=b"", renew_period=1)):
        assert stranger.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    renewers = [{"principal_type": "User", "principal_name": "bob"}]
    token = side.create("alice", renewers=renewers)
    assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "alice", "alice")
    of_bob = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    assert side.create("alice", **of_bob).error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    group = [{"principal_type": "Group", "principal_name": "g"}]
    assert side.create("alice", renewers=group).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    other = side.create("admin", **of_bob)
    assert (other.error_code, other.principal_name, other.token_requester_principal_name) == (0, "bob", "admin")

    allowed = [acl("carol", 6, token.token_id, 8), acl("erin", 7, "User:bob", 14), acl("erin", 7, "User:carol", 13)]
    assert {one.error_code for one in side.ask("", "create_acls", 3, creations=allowed).results} == {0}
    a, b = token.token_id, other.token_id
    wait_for(lambda: (side.seen("carol"), side.seen("erin"), side.seen("admin")) == ({a}, {b}, {a, b}), "they are seen")
    assert (side.seen("alice"), side.seen("bob"), side.seen("bob", "alice")) == ({a}, {a, b}, {a})
    assert side.seen("erin", "alice") == set()
    (described,) = side.ask("alice", "describe_delegation_token", 3, owners=None).tokens
    assert described.hmac == token.hmac
    assert [(one.principal_type, one.principal_name) for one in described.renewers] == [("User", "bob")]
    assert described.max_timestamp - described.issue_timestamp == 7 * 24 * _HOUR
    assert described.expiry_timestamp - described.issue_timestamp == 24 * _HOUR
    of_carol = {"owner_principal_type": "User", "owner_principal_name": "carol"}
    assert side.create("erin", **of_carol).error_code == ErrorCode.NONE

    for user, error in (("bob", 0), ("carol", ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)):
        renewed = side.ask(user, "renew_delegation_token", 2, hmac=token.hmac, renew_period=_HOUR)
        assert renewed.error_code == error
    gone = side.ask("alice", "expire_delegation_token", 2, hmac=token.hmac, expiry_time_period=500)
    assert gone.error_code == ErrorCode.NONE
    wait_for(lambda: side.seen("alice") == set(), "the controller removes the expired token")
    again = side.ask("alice", "renew_delegation_token", 2, hmac=token.hmac, renew_period=_HOUR)
    assert again.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert side.seen("bob") == {b}
    logged = "".join(capfd.readouterr())
    secrets = (SETTINGS["delegation.token.secret.key"], token.hmac.hex(), base64.b64encode(token.hmac).decode())
    assert not [one for one in (*secrets, str(bytes(token.hmac))) if one in logged]


@pytest.mark.spark
@pytest.mark.skipif(not LONG, reason="make test-long: Kafka's tools")
def test_kafkas_own_client_manages_tokens_and_may_not_with_one(side: Side, tmp_path: Path) -> None:
    tools, tool = KafkaTools(), "org.apache.kafka.tools.DelegationTokenCommand"

    def config(mechanism: str, login: str) -> Path:
        file = tmp_path / f"{mechanism}.properties"
        file.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{login};\n"
            "default.api.timeout.ms=20000\nrequest.timeout.ms=10000\n"
        )
        return file

    def run(of: Path, *words: object) -> tuple[int, str]:
        said = tools.run(tool, "--bootstrap-server", f"127.0.0.1:{side.sasl}", "--command-config", of, *words)
        return said.code, said.out + said.err

    try:
        alice = config("PLAIN", 'plain.PlainLoginModule required username="alice" password="alice-secret"')
        code, said = run(alice, "--create", "--max-life-time-period", -1, "--renewer-principal", "User:bob")
        assert code == 0, said
        wait_for(lambda: len(side.seen("alice")) == 1, "the broker knows the token")
        (described,) = side.ask("alice", "describe_delegation_token", 3, owners=None).tokens
        hmac = base64.b64encode(described.hmac).decode()
        assert hmac in said
        for words in (("--describe",), ("--renew", "--renew-time-period", _HOUR, "--hmac", hmac)):
            code, said = run(alice, *words)
            assert code == 0, said
            assert "alice" in said or "renew" in said.lower(), said
        login = f'scram.ScramLoginModule required username="{described.token_id}" password="{hmac}" tokenauth="true"'
        by_token = config("SCRAM-SHA-512", login)
        code, said = run(by_token, "--describe")
        assert code != 0
        assert "DelegationTokenDisabledException" not in said
        assert "Delegation Token requests are not allowed" in said or "not allowed" in said.lower(), said
        code, said = run(alice, "--expire", "--expiry-time-period", -1, "--hmac", hmac)
        assert code == 0, said
        wait_for(lambda: side.seen("alice") == set(), "the token is gone")
    finally:
        tools.close()
