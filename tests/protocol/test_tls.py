"""TLS with certificates made on the fly: what is trusted, what is refused, and in which words."""

from __future__ import annotations

import socket
import ssl
import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.protocol.address import Address
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import AuthenticationError, NodeError
from kraftlake.protocol.quorum_client import QuorumClient
from kraftlake.protocol.tls_config import StoreConfig, TlsConfig
from kraftlake.runtime import extras
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import EnvironmentFaultError, UsageError
from tests.certificates import PASSWORD, Identity, authority, issued
from tests.fuzzing.of_stores import pkcs12_stores
from tests.protocol.fake_nodes import FakeController, Talk, serving
from tests.waiting import PATIENCE, unless_paused

CA = authority()
NODE = issued(CA, "node")
CLIENT = issued(CA, "client", hosts=())
TRUST = StoreConfig(name="truststore", type="PEM", certificates=CA.pem)
KEYS = StoreConfig(name="keystore", type="PEM", key=CLIENT.key_pem(), certificates=CLIENT.pem)

VERSION, PUBLIC_KEY = b"\xa0\x03\x02\x01\x02", b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70"
"""Parts of a certificate: its version, and the kind of its key."""


def server(identity: Identity = NODE, *, asks: Identity | None = None, version: ssl.TLSVersion | None = None) -> Talk:
    """A controller behind TLS; `asks` for a certificate of an authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(identity.key_pem() + identity.pem)
        file.flush()
        context.load_cert_chain(file.name)
    if asks is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=asks.pem)
    if version is not None:
        context.maximum_version = version
    node = FakeController()

    def talk(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) as secured:
            try:
                secured.do_handshake()
                node(secured)
            except ssl.SSLError:  # it is sent to the client, and lost if bytes of the client's are not read
                secured.shutdown(socket.SHUT_WR)
                while secured.recv(4096):
                    pass

    return talk


def ask(talk: Talk, tls: TlsConfig | None, *, host: str = "127.0.0.1") -> None:
    """Ask a node for its quorum; its host is named in place of 127.0.0.1."""
    connect = NodeConnector(config=ClientConfig(file="client.properties", tls=tls), timeout=PATIENCE)
    with serving(talk) as address, QuorumClient([Address(host, address.port)], connect=connect) as client:
        assert client.describe().leader_id == 9


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_node_of_a_trusted_authority_is_asked(version: ssl.TLSVersion, host: str) -> None:
    ask(server(version=version), TlsConfig(truststore=TRUST), host=host)


def flat(pem: str) -> str:
    """PEM text as it is in a properties file whose lines are continued."""
    return pem.strip().replace("\n", " ")


def test_stores_are_read_in_every_form(tmp_path: Path) -> None:
    pem = tmp_path / "ca.pem"
    pem.write_text(CA.pem)
    key = tmp_path / "client.pem"
    key.write_text(CLIENT.pem + CLIENT.key_pem("key-secret"))
    trust = StoreConfig(name="truststore", location=str(CA.write_truststore(tmp_path / "ca.p12")), password=PASSWORD)
    keys = StoreConfig(name="keystore", location=str(CLIENT.write_keystore(tmp_path / "c.p12")), password=PASSWORD)
    talk = server(asks=CA)
    for truststore, keystore in (
        (TRUST, KEYS),
        (attrs.evolve(TRUST, certificates=flat(CA.pem)), attrs.evolve(KEYS, key=flat(CLIENT.key_pem()))),
        (TRUST, attrs.evolve(KEYS, key=CLIENT.key_pem("key-secret"), key_password="key-secret")),
        (StoreConfig(name="truststore", type="PEM", location=str(pem)), keys),
        (trust, StoreConfig(name="keystore", type="PEM", location=str(key), key_password="key-secret")),
    ):
        ask(talk, TlsConfig(truststore=truststore, keystore=keystore))


def test_a_certificate_in_the_truststore_is_trusted_without_its_authority() -> None:
    ask(server(), TlsConfig(truststore=StoreConfig(name="truststore", type="PEM", certificates=NODE.pem)))


def test_a_name_that_is_not_checked_may_be_another() -> None:
    elsewhere = server(issued(CA, "node", hosts=("elsewhere.example",)))
    ask(elsewhere, TlsConfig(truststore=TRUST, check_host=False))
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(AuthenticationError, match=rf"^{host}\S+ shows a certificate for another host: .*{host}"):
            ask(elsewhere, TlsConfig(truststore=TRUST), host=host)


@pytest.mark.parametrize("check_host", [True, False])
def test_a_certificate_that_is_not_to_be_trusted_is_one_sentence(check_host: bool) -> None:
    tls = TlsConfig(truststore=TRUST, check_host=check_host)
    with pytest.raises(AuthenticationError, match=r"^127\S+ shows a certificate that has expired\.$"):
        ask(server(issued(CA, "node", expired=True)), tls)
    with pytest.raises(AuthenticationError, match=r"that no authority of ssl.truststore has signed \(.+\)\.$"):
        ask(server(issued(authority("another"), "node")), tls)
    with pytest.raises(AuthenticationError, match=r"that this system does not trust \(.+\): name its authority in"):
        ask(server(), TlsConfig(check_host=check_host))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_node_that_asks_for_a_client_certificate_says_so(version: ssl.TLSVersion) -> None:
    tls = TlsConfig(truststore=TRUST)
    with pytest.raises(NodeError, match=r"^127\S+ .*asks? for a client certificate .*ssl\.keystore\.location"):
        ask(server(asks=CA, version=version), tls)
    with pytest.raises(AuthenticationError, match=r"^127\S+ does not accept the certificate of ssl.keystore \(alert"):
        ask(server(asks=authority("another"), version=version), attrs.evolve(tls, keystore=KEYS))


def test_a_version_that_the_node_lacks_is_one_sentence() -> None:
    with pytest.raises(AuthenticationError, match=r"^127\S+ refuses TLS \(alert protocol version\)\.$"):
        ask(server(version=ssl.TLSVersion.TLSv1_2), TlsConfig(truststore=TRUST, versions=("TLSv1.3",)))


def test_a_listener_without_tls_and_a_client_without_tls_are_one_sentence() -> None:
    def closing(connection: socket.socket) -> None:
        connection.recv(1)

    def http(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    for talk in (closing, http):
        with pytest.raises(NodeError, match=r"is it a listener for SSL or SASL_SSL\?$"):
            ask(talk, TlsConfig(truststore=TRUST))
    with pytest.raises(NodeError, match=r"wants TLS: set security.protocol|(closed|broke) .* or want TLS"):
        ask(server(), None)


@unless_paused(0.02)
def test_the_time_limit_covers_the_handshake() -> None:
    clock = ManualClock()

    def silent(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.recv(1)

    connect = NodeConnector(config=ClientConfig(tls=TlsConfig(truststore=TRUST)), timeout=0.05, clock=clock)
    with serving(silent) as address, pytest.raises(NodeError, match=r"did not answer TLS within 0\.05 s"):
        connect(address)


@given(said=st.binary(max_size=100).map(lambda data: b"\x16\x03\x03" + data) | st.binary(max_size=100))
def test_any_bytes_in_the_handshake_are_one_error(said: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(said)

    with pytest.raises(NodeError):
        ask(talk, TlsConfig(truststore=TRUST))


def test_the_error_names_a_store_that_can_not_be_used(tmp_path: Path) -> None:
    p12 = CLIENT.write_keystore(tmp_path / "client.p12")
    trusted = CA.write_truststore(tmp_path / "ca.p12")
    jks = tmp_path / "old.jks"
    jks.write_bytes(bytes.fromhex("feedfeed00000002"))
    pem = tmp_path / "ca.pem"
    pem.write_text(CA.pem)

    def trust(**values: str) -> TlsConfig:
        return TlsConfig(truststore=StoreConfig(name="truststore", **values))

    def keys(**values: str) -> TlsConfig:
        return TlsConfig(keystore=StoreConfig(name="keystore", **values))

    chain, other = CLIENT.pem, NODE.key_pem()
    for tls, message in (
        (trust(location=str(jks)), f"{jks} .* is a JKS store, which only Java reads: make a copy by `keytool -import"),
        (trust(location=str(pem)), r"is PEM, not JKS: set ssl\.truststore\.type=PEM"),
        (trust(location=str(tmp_path / "no")), r"ssl\.truststore\.location=.*/no can't be read: No such file"),
        (trust(location=str(p12), password=PASSWORD + "x"), r"ssl\.truststore\.password does not open it"),
        (trust(location=str(trusted)), r"is no PKCS12 store, or ssl\.truststore\.password does not open it"),
        (trust(type="PEM", certificates="the-secret"), r"ssl\.truststore\.certificates holds no certificates in PEM"),
        (trust(type="PEM", location=str(trusted)), "holds no certificates in PEM form"),
        (keys(location=str(trusted), password=PASSWORD), "holds no private key with a certificate"),
        (keys(type="PEM", location=str(pem)), "does not hold a private key and its certificates in PEM form"),
        (keys(type="PEM", key=CLIENT.key_pem("the-secret"), certificates=chain), r"ssl\.key\.password does not open"),
        (
            keys(type="PEM", key=CLIENT.key_pem("the-secret"), certificates=chain, key_password="another"),
            r"ssl\.key\.password does not open",
        ),
        (keys(type="PEM", key=other, certificates=chain), "holds a key that does not belong to its certificate"),
        (keys(type="PEM", key="the-secret", certificates="x"), "does not hold a private key"),
    ):
        with pytest.raises(UsageError, match=f"^client.properties: .*{message}") as caught:
            NodeConnector(config=ClientConfig(file="client.properties", tls=tls))
        assert "the-secret" not in str(caught.value)
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("truststore", VERSION, "holds a certificate of another version than TLS has"),
        ("keystore", VERSION, "holds a certificate of another version than TLS has"),
        ("keystore", PUBLIC_KEY, "holds a key or a certificate that TLS can not use"),
    ],
)
def test_certificates_in_a_pkcs12_store_that_tls_has_not_are_one_sentence(
    tmp_path: Path, name: str, changed: bytes, message: str
) -> None:
    content = list(pkcs12_stores())[name == "keystore"][1:]
    assert changed in content
    file = tmp_path / "odd.p12"
    file.write_bytes(content.replace(changed, changed[:-1] + b"\x07", 1))
    store = StoreConfig(name=name, location=str(file))
    with pytest.raises(UsageError, match=rf"^client.properties: .*odd\.p12 .*{message}\.$"):
        NodeConnector(config=ClientConfig(file="client.properties", tls=TlsConfig(**{name: store})))


def test_a_key_lies_on_the_disk_for_its_owner_alone_and_encrypted_if_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bytes]] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(context: ssl.SSLContext, file: str, **options: str) -> None:
        seen.append((Path(file).stat().st_mode & 0o777, Path(file).read_bytes()))
        load(context, file, **options)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    p12 = StoreConfig(name="keystore", location=str(CLIENT.write_keystore(tmp_path / "c.p12")), password=PASSWORD)
    locked = attrs.evolve(KEYS, key=CLIENT.key_pem("key-secret"), key_password="key-secret")
    for keystore in (p12, locked):
        NodeConnector(config=ClientConfig(tls=TlsConfig(keystore=keystore)))
    assert [mode for mode, _ in seen] == [0o600, 0o600]
    assert all(b"ENCRYPTED PRIVATE KEY" in content for _, content in seen)
    assert not list((tmp_path / "tmp").iterdir())


def test_a_pkcs12_store_without_the_package_that_reads_it_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "is_installed", lambda module: module != "cryptography")
    store = StoreConfig(name="truststore", location=str(CA.write_truststore(tmp_path / "ca.p12")), password=PASSWORD)
    message = r"^PKCS12 stores need the package cryptography: pip install 'kraftlake\[tls\]'$"
    with pytest.raises(EnvironmentFaultError, match=message):
        NodeConnector(config=ClientConfig(tls=TlsConfig(truststore=store)))
    NodeConnector(config=ClientConfig(tls=TlsConfig(truststore=TRUST, keystore=KEYS)))
