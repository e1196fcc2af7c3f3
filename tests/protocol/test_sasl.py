"""Logins at a scripted node; `test_kafka_security.py` has those at a real one."""

from __future__ import annotations

import socket
import struct
import tracemalloc
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from kio.static.primitive import i64Timedelta

from kraftlake.protocol.client_config import ClientConfig, SaslConfig
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import AuthenticationError, NodeError
from kraftlake.protocol.quorum_client import QuorumClient
from kraftlake.runtime.clock import ManualClock
from tests.protocol.fake_nodes import FakeController, encoded, frame, receive_frame, serving
from tests.waiting import PATIENCE

ALICE = SaslConfig(mechanism="PLAIN", user="alice", password="the-secret")
HANDSHAKE, AUTHENTICATE = 17, 36


class LoginNode(FakeController):
    """A controller that takes any login; what it answers may be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.versions |= {HANDSHAKE: (0, 1), AUTHENTICATE: (0, 2)}
        self.mechanisms = ("PLAIN",)
        self.handshake_error = ErrorCode.NONE
        self.answers: Sequence[tuple[ErrorCode, bytes]] = [(ErrorCode.NONE, b"")]
        self.error_message: str | None = None
        self.lifetime_ms = 0
        self.said: list[bytes] = []

    def __call__(self, connection: socket.socket) -> None:
        handlers = {18: self._api_versions, 55: self._quorum, 60: self._cluster, HANDSHAKE: self._handshake}
        answers = list(self.answers)
        while True:
            request = receive_frame(connection)
            api_key, _, correlation_id = struct.unpack(">hhi", request[:8])
            if api_key == AUTHENTICATE:
                self.said.append(request)
                answer: Any = self._authenticate(*answers[(len(self.said) - 1) % len(answers)])
            else:
                answer = handlers[api_key]()
            tags = b"" if api_key in (18, HANDSHAKE) else b"\0"
            connection.sendall(frame(struct.pack(">i", correlation_id) + tags + encoded(answer)))

    def _handshake(self) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(error_code=self.handshake_error, mechanisms=self.mechanisms)

    def _authenticate(self, code: ErrorCode, data: bytes) -> SaslAuthenticateResponse:
        lifetime = i64Timedelta.parse(timedelta(milliseconds=self.lifetime_ms))
        return SaslAuthenticateResponse(
            error_code=code, error_message=self.error_message, auth_bytes=data, session_lifetime=lifetime
        )


def ask(node: LoginNode, sasl: SaslConfig = ALICE) -> None:
    connect = NodeConnector(config=ClientConfig(sasl=sasl), timeout=PATIENCE)
    with serving(node) as address, QuorumClient([address], connect=connect) as client:
        assert client.describe().leader_id == 9


@pytest.fixture
def node() -> LoginNode:
    return LoginNode()


def test_a_password_is_sent_as_rfc_4616_says(node: LoginNode) -> None:
    ask(node)
    assert len(node.said) == 1
    assert node.said[0].endswith(b"\x12\0alice\0the-secret\0"), "one more than its length, then the tagged fields"


def test_a_token_and_its_extensions_are_sent_as_rfc_7628_says(node: LoginNode, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc.def.\n")
    bearer = SaslConfig(mechanism="OAUTHBEARER", token_file=str(file), extensions={"one": "1", "two": "2"})
    ask(node, bearer)
    assert b"n,,\x01auth=Bearer abc.def.\x01one=1\x01two=2\x01\x01" in node.said[0]
    node.answers = [(ErrorCode.NONE, b'{"status":"invalid_token"}'), (ErrorCode.SASL_AUTHENTICATION_FAILED, b"")]
    node.said.clear()
    with pytest.raises(AuthenticationError, match=rf"refuses the token \(OAUTHBEARER\): invalid_token; check {file}"):
        ask(node, bearer)
    assert node.said[1].endswith(b"\x02\x01\0"), "the error is acknowledged"


@pytest.mark.parametrize(
    ("content", "message"), [("a b", "characters that no token has"), ("a\x01b", "characters"), ("", "is empty")]
)
def test_a_file_without_a_token_is_one_sentence(node: LoginNode, tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    bearer = SaslConfig(mechanism="OAUTHBEARER", token_file=str(file))
    with pytest.raises(AuthenticationError, match=rf"the token in {file} \(sasl.oauthbearer\S+\) .*{message}"):
        ask(node, bearer)
    file.unlink()
    with pytest.raises(AuthenticationError, match="can't be read: No such file or directory"):
        ask(node, bearer)


def test_a_refusal_is_one_sentence_without_the_password(node: LoginNode) -> None:
    node.answers = [(ErrorCode.SASL_AUTHENTICATION_FAILED, b"")]
    for sent, shown in (("No\x1b[1m entry.", r"No\x1b[1m entry"), (None, "sasl_authentication_failed"), ("", "sasl_")):
        node.error_message = sent
        with pytest.raises(AuthenticationError) as caught:
            ask(node)
        assert f"refuses user 'alice' (PLAIN): {shown}" in str(caught.value)
        assert str(caught.value).endswith("; check sasl.jaas.config.")
        assert "the-secret" not in str(caught.value)


def test_a_mechanism_that_is_not_offered_is_named_beside_those_that_are(node: LoginNode) -> None:
    node.handshake_error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    node.mechanisms = ("GSSAPI", "X\x1b")
    with pytest.raises(AuthenticationError, match=r"does not take PLAIN, but GSSAPI and X\\x1b: set sasl\.mechanism"):
        ask(node)
    node.handshake_error = ErrorCode.ILLEGAL_SASL_STATE
    with pytest.raises(AuthenticationError, match="takes no login: its listener speaks PLAINTEXT or SSL"):
        ask(node)
    node.handshake_error = ErrorCode.UNKNOWN_SERVER_ERROR
    with pytest.raises(AuthenticationError, match=r"does not begin the login by PLAIN \(unknown_server_error\)"):
        ask(node)


def test_a_node_that_does_not_prove_that_it_knows_the_password_is_refused(node: LoginNode) -> None:
    scram = attrs.evolve(ALICE, mechanism="SCRAM-SHA-256")
    node.answers = [(ErrorCode.NONE, b"r=another,s=AAAA,i=4096")]
    with pytest.raises(AuthenticationError, match=r"^127\S+ sent a SCRAM challenge for another login\.$"):
        ask(node, scram)


def test_a_login_is_repeated_on_its_connection_before_its_session_ends(node: LoginNode) -> None:
    clock = ManualClock()
    node.lifetime_ms = 10_000

    def describe(client: NodeClient) -> None:
        client.ask("describe_cluster", range(2), lambda module: module.DescribeClusterRequest(
            include_cluster_authorized_operations=False))  # fmt: skip

    connect = NodeConnector(config=ClientConfig(sasl=ALICE), clock=clock)
    with serving(node) as address, connect(address) as client:
        logins = []
        for _ in range(5):
            describe(client)
            logins.append(len(node.said))
            clock.advance(4_000)
        node.lifetime_ms = 0
        describe(client)
        clock.advance(1e9)
        describe(client)
    assert logins == [1, 1, 1, 2, 2]
    assert len(node.said) == 3


@given(
    answers=st.lists(st.binary(max_size=60), min_size=1, max_size=5),
    mechanism=st.sampled_from(["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]),
    stage=st.integers(0, 2),
)
def test_any_bytes_at_any_stage_of_a_login_are_one_error(answers: Sequence[bytes], mechanism: str, stage: int) -> None:
    node = LoginNode()
    sound = [encoded(node._api_versions()), encoded(node._handshake())][:stage]

    def talk(connection: socket.socket) -> None:
        for number, answer in enumerate([*sound, *answers]):
            correlation_id = receive_frame(connection)[4:8]
            tags = b"\0" if number > 1 else b""
            connection.sendall(frame(correlation_id + tags + answer))

    connect = NodeConnector(config=ClientConfig(sasl=attrs.evolve(ALICE, mechanism=mechanism)), timeout=PATIENCE)
    with serving(talk) as address, QuorumClient([address], connect=connect) as client, pytest.raises(NodeError):
        client.describe()


@pytest.mark.parametrize(
    ("stage", "claim"),
    [
        (0, b"\0\0\xff\xff\xff\xff\x07"),  # API keys
        (1, b"\0\0\x7f\xff\xff\xff"),  # mechanisms
        (2, b"\0\0\0\0\xff\xff\xff\xff\x0f"),  # bytes of the mechanism
    ],
)
def test_a_node_that_claims_more_than_it_sends_gets_no_memory(stage: int, claim: bytes) -> None:
    node = LoginNode()
    sound = [encoded(node._api_versions()), encoded(node._handshake())][:stage]

    def talk(connection: socket.socket) -> None:
        for answer in (*sound, claim):
            connection.sendall(frame(receive_frame(connection)[4:8] + answer))

    connect = NodeConnector(config=ClientConfig(sasl=ALICE), timeout=PATIENCE)
    with serving(talk) as address, QuorumClient([address], connect=connect) as client:
        tracemalloc.start()
        try:
            with pytest.raises(NodeError, match="bytes that are no"):
                client.describe()
            assert tracemalloc.get_traced_memory()[1] < 1024 * 1024
        finally:
            tracemalloc.stop()
