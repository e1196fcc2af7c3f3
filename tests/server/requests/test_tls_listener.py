"""A listener for SSL: who comes in, as whom, and who waits meanwhile."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kraftlake.runtime.errors import UsageError
from kraftlake.server.listener_security import listener_security
from kraftlake.server.node_config import NodeSettings
from kraftlake.server.requests.dispatcher import Peer, Respond
from kraftlake.server.requests.listener import RequestListener
from tests.certificates import PASSWORD, Identity, authority, issued
from tests.protocol.fake_nodes import frame, receive_frame
from tests.waiting import PATIENCE, wait_for

CA, CLIENTS = authority(), authority("of clients")
NODE = issued(CA, "node")
ALICE = issued(CLIENTS, "alice")
KEYS = {"ssl.keystore.type": "PEM", "ssl.keystore.key": NODE.key_pem(), "ssl.keystore.certificate.chain": NODE.pem}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": CLIENTS.pem}


def answer_principal(data: bytes, peer: Peer, respond: Respond) -> None:
    """Answer with the principal."""
    respond(f"{peer.principal} {peer.security_protocol.name}".encode() + data[:0])


@contextmanager
def listening(**settings: str) -> Iterator[RequestListener]:
    values = KEYS | {name.replace("_", "."): value for name, value in settings.items()}
    security = listener_security(NodeSettings(values=values), "SSL")
    listener = RequestListener("SSL", "127.0.0.1", 0, answer_principal, security=security)
    listener.start()
    yield listener
    listener.close()


def client_context(identity: Identity | None = None, *, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=CA.pem)
    if identity is not None and folder is not None:
        file = folder / "client.pem"
        file.write_text(identity.key_pem() + identity.pem)
        context.load_cert_chain(file)
    return context


def answer(listener: RequestListener, context: ssl.SSLContext, size: int = 10) -> str:
    """What the listener answers a client."""
    with (
        socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as client,
    ):
        for _ in range(2):
            client.sendall(frame(bytes(size)))
            found = receive_frame(client).decode()
    return found


def test_a_client_without_a_certificate_is_anonymous_over_tls() -> None:
    with listening() as listener:
        assert answer(listener, client_context()) == "User:ANONYMOUS SSL"
        assert answer(listener, client_context(), size=1_000_000) == "User:ANONYMOUS SSL"
        assert listener.authentications.successful == 2


def test_a_client_is_who_its_certificate_says_in_the_words_of_the_rules(tmp_path: Path) -> None:
    with_name = client_context(ALICE, folder=tmp_path)
    with listening(**TRUST, ssl_client_auth="required") as listener:
        assert answer(listener, with_name) == "User:CN=alice SSL"
        with pytest.raises((ssl.SSLError, OSError)):
            answer(listener, client_context())
        wait_for(lambda: listener.authentications.failed == 1, "the failure to be counted")
    rules = "RULE:^CN=(a.*)$/$1@here/U,DEFAULT"
    with listening(**TRUST, ssl_client_auth="requested", ssl_principal_mapping_rules=rules) as listener:
        assert answer(listener, with_name) == "User:ALICE@HERE SSL"
        assert answer(listener, client_context()) == "User:ANONYMOUS SSL"
    with listening(**TRUST, ssl_client_auth="required", ssl_principal_mapping_rules="RULE:CN=b/x/") as listener:
        with pytest.raises((EOFError, OSError)):  # it may have written, which resets the connection
            answer(listener, with_name)
        wait_for(lambda: listener.authentications.failed == 1, "the failure to be counted")


@pytest.mark.parametrize("stranger", [issued(authority(), "alice"), issued(CLIENTS, "alice", expired=True)])
def test_a_certificate_that_is_not_trusted_or_has_expired_lets_no_one_in(stranger: Identity, tmp_path: Path) -> None:
    with listening(**TRUST, ssl_client_auth="requested") as listener, pytest.raises((ssl.SSLError, OSError)):
        answer(listener, client_context(stranger, folder=tmp_path))


def test_silent_clients_give_way_and_others_are_served_meanwhile() -> None:
    with listening() as listener:
        silent = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(300)]
        assert answer(listener, client_context()) == "User:ANONYMOUS SSL"
        assert listener.connections <= 257
        silent[0].settimeout(PATIENCE)
        assert silent[0].recv(1) == b""
        for one in silent:
            one.close()
        wait_for(lambda: listener.connections == 0, "their end to be noticed")


def test_plain_bytes_end_their_connection_alone() -> None:
    with listening() as listener, socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE) as plain:
        plain.sendall(frame(bytes(100)))
        with suppress(ConnectionError):
            while plain.recv(1000):
                pass
        assert answer(listener, client_context()) == "User:ANONYMOUS SSL"


def test_a_changed_keystore_counts_for_new_connections() -> None:
    other = authority("another")
    new = issued(other, "node")
    with listening() as listener:
        values = KEYS | {"ssl.keystore.key": new.key_pem(), "ssl.keystore.certificate.chain": new.pem}
        listener.secure(listener_security(NodeSettings(values=values), "SSL"))
        with pytest.raises(ssl.SSLCertVerificationError):
            answer(listener, client_context())
        assert answer(listener, ssl.create_default_context(cadata=other.pem)) == "User:ANONYMOUS SSL"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "The listener SSL speaks SSL and has no certificate: give ssl.keystore.location"),
        (KEYS | {"ssl.principal.mapping.rules": "RULE:a"}, "ssl.principal.mapping.rules in .* has an invalid rule"),
        (KEYS | {"principal.builder.class": "Mine"}, "principal.builder.class is Mine"),
        ({"listener.security.protocol.map": "A:SSL"}, "has no protocol of the listener SSL"),
    ],
)
def test_settings_without_sense_are_one_sentence(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        listener_security(NodeSettings(values=settings), "SSL")


def test_the_settings_of_a_listener_go_over_those_of_the_node() -> None:
    values = KEYS | {"ssl.client.auth": "required", "listener.name.ssl.ssl.client.auth": "none"}
    security = listener_security(NodeSettings(values=values | {"ssl.keystore.password": PASSWORD}), "SSL")
    assert security.tls is not None
    assert security.tls.client_auth == "none"
    assert PASSWORD not in repr(security)
    assert "PRIVATE" not in repr(security)


def test_a_client_that_asks_for_another_handshake_gets_none_and_others_are_served() -> None:
    said = b""
    with listening() as listener:
        command = ["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{listener.port}"]
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert client.stdin is not None
        assert client.stdout is not None
        wait_for(lambda: listener.authentications.successful == 1, "the first handshake")
        client.stdin.write(b"R\n")
        client.stdin.flush()
        while b"RENEGOTIATING" not in said:
            said += client.stdout.readline()
        assert answer(listener, client_context()) == "User:ANONYMOUS SSL"
        time.sleep(0.5)  # time enough for an answer
        client.kill()
        said += client.communicate()[0]
    before, after = said.split(b"RENEGOTIATING")
    assert b"CN = node" in before
    assert b"CN = node" not in after
