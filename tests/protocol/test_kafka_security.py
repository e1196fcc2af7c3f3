"""TLS and logins at the listeners of a real Kafka node, of its broker and its controller."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

import kraftlake
from kraftlake.diagnosis.undo.applying import ApplyError
from kraftlake.protocol import node_client
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.admin_client import MissingRightError
from kraftlake.protocol.client_config import read_client_config
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import AuthenticationError, NodeError
from kraftlake.protocol.quorum_client import QuorumClient, QuorumPosition
from kraftlake.protocol.sasl import authenticate
from tests.at_least_one import at_least_one
from tests.certificates import PASSWORD, Identity, authority, issued
from tests.kafka_node import KafkaNode, started_node

pytestmark = pytest.mark.spark
LISTENERS = {
    "CONTROLLER_SSL": "SSL",
    "CONTROLLER_MUTUAL": "SSL",
    "CONTROLLER_SASL": "SASL_PLAINTEXT",
    "CONTROLLER_BOTH": "SASL_SSL",
    "BOTH": "SASL_SSL",
    "SHORT": "SASL_PLAINTEXT",
}
SECURITY = "org.apache.kafka.common.security"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SESSION_MS = 1500
ROOT = Path(__file__).resolve().parents[2]


def token(subject: str, *, lasts: float = 3600) -> str:
    """An unsigned token, which a node without a key set accepts."""
    parts = [{"alg": "none"}, {"sub": subject, "iat": time.time() - 10, "exp": time.time() + lasts}]
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), ""])


def settings(folder: Path, server: Identity, clients: Identity) -> dict[str, str]:
    """Keys for the node, and logins at its SASL listeners: everybody may do everything but eve."""
    plain = f'{SECURITY}.plain.PlainLoginModule required user_alice="alice-secret";'
    scram = f"{SECURITY}.scram.ScramLoginModule required;"
    bearer = f'{SECURITY}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="node";'
    logins = {"plain": plain, "scram-sha-256": scram, "scram-sha-512": scram, "oauthbearer": bearer}
    found = {
        "ssl.keystore.location": str(server.write_keystore(folder / "node.p12")),
        "ssl.keystore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.location": str(clients.write_truststore(folder / "clients.p12")),
        "ssl.truststore.password": PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "listener.name.controller_mutual.ssl.client.auth": "required",
        "listener.name.short.plain.connections.max.reauth.ms": str(SESSION_MS),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connection.failed.authentication.delay.ms": "0",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:bob;User:carol;User:CN=operator",
    }
    for name, protocol in LISTENERS.items():
        if protocol.startswith("SASL"):
            found[f"listener.name.{name.lower()}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            for mechanism, login in logins.items():
                found[f"listener.name.{name.lower()}.{mechanism}.sasl.jaas.config"] = login
    del found["sasl.enabled.mechanisms"]
    found["listener.name.both.sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
    return found


@attrs.frozen(kw_only=True)
class Secured:
    """A node, the certificates around it, and a folder for clients' files."""

    node: KafkaNode
    folder: Path
    authority: Identity
    operator: Identity

    def position(self, listener: str, *lines: str) -> QuorumPosition:
        """What the quorum answers a client with these properties, over a listener."""
        file = self.folder / "client.properties"
        file.write_text("\n".join(lines), "utf-8")
        connector = NodeConnector(config=read_client_config(file), timeout=20)
        with QuorumClient(parse_addresses(self.node.listener(listener)), connect=connector) as client:
            return client.describe()

    def trusting(self, protocol: str = "SSL") -> list[str]:
        """Properties of a client that trusts the node's authority, in PEM form."""
        file = self.folder / "authority.pem"
        file.write_text(self.authority.pem)
        return [f"security.protocol={protocol}", "ssl.truststore.type=PEM", f"ssl.truststore.location={file}"]

    def __repr__(self) -> str:
        return "Secured"


def login(mechanism: str, user: str, password: str, *, protocol: str = "SASL_PLAINTEXT") -> list[str]:
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    entry = f'{SECURITY}.{module}LoginModule required username="{user}" \\\n    password="{password}";'
    return [f"security.protocol={protocol}", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={entry}"]


def bearer(file: Path) -> list[str]:
    return [
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=OAUTHBEARER",
        f"sasl.jaas.config={SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
        f"sasl.oauthbearer.token.endpoint.url={file.as_uri()}",
    ]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    ca = authority()
    with started_node(folder / "kafka", listeners=LISTENERS, settings=settings(folder, issued(ca, "node"), ca)) as node:
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            credentials = [
                UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), f"{user}-secret".encode())
                for user in ("bob", "eve")
            ]
            for done in node.admin.alter_user_scram_credentials(credentials).values():
                done.result(timeout=60)
        yield Secured(node=node, folder=folder, authority=ca, operator=issued(ca, "operator", hosts=()))


def test_tls_reaches_the_quorum_with_stores_of_either_kind(secured: Secured) -> None:
    pkcs12 = secured.authority.write_truststore(secured.folder / "authority.p12")
    inline = secured.authority.pem.strip().replace("\n", " \\\n")
    stores = [
        secured.trusting(),
        ["security.protocol=SSL", f"ssl.truststore.location={pkcs12}", f"ssl.truststore.password={PASSWORD}"],
        ["security.protocol=ssl", "ssl.truststore.type=PEM", f"ssl.truststore.certificates={inline}"],
    ]
    for lines in stores:
        assert secured.position("CONTROLLER_SSL", *lines).leader_id == 1


def test_a_client_certificate_opens_a_listener_that_asks_for_one(secured: Secured) -> None:
    chain = secured.folder / "operator.pem"
    chain.write_text(secured.operator.key_pem("key-secret") + secured.operator.pem)
    stores = [
        [f"ssl.keystore.location={secured.operator.write_keystore(secured.folder / 'operator.p12')}",
         f"ssl.keystore.password={PASSWORD}"],
        ["ssl.keystore.type=PEM", f"ssl.keystore.location={chain}", "ssl.key.password=key-secret"],
    ]  # fmt: skip
    for lines in stores:
        assert secured.position("CONTROLLER_MUTUAL", *secured.trusting(), *lines).leader_id == 1
    with pytest.raises(AuthenticationError, match=r"asks for a client certificate .*: give one in ssl.keystore.loc"):
        secured.position("CONTROLLER_MUTUAL", *secured.trusting())
    stranger = issued(authority(), "operator").write_keystore(secured.folder / "stranger.p12")
    store = [f"ssl.keystore.location={stranger}", f"ssl.keystore.password={PASSWORD}"]
    with pytest.raises(AuthenticationError, match=r"does not accept the certificate of ssl.keystore"):
        secured.position("CONTROLLER_MUTUAL", *secured.trusting(), *store)


@pytest.mark.parametrize(
    ("mechanism", "user"), [("PLAIN", "alice"), ("SCRAM-SHA-256", "bob"), ("SCRAM-SHA-512", "bob")]
)
def test_a_login_by_password_is_taken_and_a_wrong_one_is_one_sentence(
    secured: Secured, mechanism: str, user: str
) -> None:
    assert secured.position("CONTROLLER_SASL", *login(mechanism, user, f"{user}-secret")).leader_id == 1
    for who in (user, "nobody"):
        message = rf"^127\S+ refuses user '{who}' \({mechanism}\): .*[Ii]nvalid.*; check sasl.jaas.config\.$"
        with pytest.raises(AuthenticationError, match=message) as caught:
            secured.position("CONTROLLER_SASL", *login(mechanism, who, "not-the-secret"))
        assert "not-the-secret" not in str(caught.value)


def test_a_token_is_read_anew_for_each_connection(secured: Secured) -> None:
    file = secured.folder / "token"
    for content, message in ((token("carol", lasts=-5), "invalid_token"), ("abc", "invalid_token"), ("", "is empty")):
        file.write_text(content)
        with pytest.raises(AuthenticationError, match=message):
            secured.position("CONTROLLER_SASL", *bearer(file))
    file.write_text(f"{token('carol')}\n")
    assert secured.position("CONTROLLER_SASL", *bearer(file)).leader_id == 1


def test_tls_and_a_login_go_together_at_brokers_and_controllers(secured: Secured) -> None:
    trusting = secured.trusting("SASL_SSL")
    for listener, mechanism in (("BOTH", "SCRAM-SHA-512"), ("CONTROLLER_BOTH", "SCRAM-SHA-256")):
        assert secured.position(listener, *login(mechanism, "bob", "bob-secret"), *trusting).leader_id == 1
    with pytest.raises(AuthenticationError, match="does not take SCRAM-SHA-256, but SCRAM-SHA-512: set"):
        secured.position("BOTH", *login("SCRAM-SHA-256", "bob", "bob-secret"), *trusting)


def test_a_denied_principal_is_named_with_the_acl_that_it_lacks(secured: Secured) -> None:
    eve = login("SCRAM-SHA-512", "eve", "eve-secret")
    with pytest.raises(NodeError, match="describe its quorum: User:eve needs an ACL for Describe on the cluster"):
        secured.position("BOTH", *eve, *secured.trusting("SASL_SSL"))
    with pytest.raises(NodeError, match=r"tell its cluster: User:eve needs an ACL for Alter .* \(a broker tells it"):
        secured.position("CONTROLLER_SASL", *eve)


def test_an_observer_reads_the_log_over_each_listener_and_a_denied_one_learns_its_acl(secured: Secured) -> None:
    (secured.folder / "token").write_text(token("carol"))
    file = secured.folder / "observer.properties"
    for listener, lines in (
        ("CONTROLLER_SSL", secured.trusting()),
        ("CONTROLLER_SASL", login("PLAIN", "alice", "alice-secret")),
        ("CONTROLLER_SASL", login("SCRAM-SHA-512", "bob", "bob-secret")),
        ("CONTROLLER_SASL", bearer(secured.folder / "token")),
        ("CONTROLLER_BOTH", [*login("SCRAM-SHA-256", "bob", "bob-secret"), *secured.trusting("SASL_SSL")]),
    ):
        file.write_text("\n".join(lines))
        source = kraftlake.open(secured.node.listener(listener), command_config=file)
        assert (source.cluster_id, list(source.image().cluster.brokers)) == (secured.node.cluster_id, [1])
    file.write_text("\n".join(login("SCRAM-SHA-512", "eve", "eve-secret")))
    eve = secured.node.listener("CONTROLLER_SASL")
    with pytest.raises(NodeError, match="does not tell its cluster's id for User:eve: give it with --cluster-id"):
        kraftlake.open(eve, command_config=file)
    with pytest.raises(NodeError, match="an ACL is missing that allows CLUSTER_ACTION on the cluster for User:eve"):
        kraftlake.open(eve, command_config=file, cluster_id=secured.node.cluster_id)
    file.write_text("\n".join(login("SCRAM-SHA-512", "bob", "wrong")))
    with pytest.raises(AuthenticationError, match="refuses user 'bob'"):
        kraftlake.open(eve, command_config=file)


@pytest.mark.parametrize(
    ("listener", "protocol", "message"),
    [
        ("CONTROLLER_SSL", "PLAINTEXT", "wants TLS: set security.protocol"),
        ("BOTH", "SASL_PLAINTEXT", "wants TLS: set security.protocol"),
        ("CONTROLLER_SASL", "PLAINTEXT", "its listener wants a login"),
        ("CONTROLLER_SASL", "SASL_SSL", "is it a listener for SSL or SASL_SSL"),
        ("CONTROLLER_BOTH", "SSL", "its listener wants a login"),
        ("CONTROLLER_SSL", "SASL_SSL", "takes no login: its listener speaks PLAINTEXT or SSL"),
    ],
)
def test_another_security_protocol_than_the_listeners_is_one_sentence(
    secured: Secured, listener: str, protocol: str, message: str
) -> None:
    lines = [*login("SCRAM-SHA-512", "bob", "bob-secret"), *secured.trusting(protocol)]
    with pytest.raises(NodeError, match=message):
        secured.position(listener, *lines)


def test_a_session_that_ends_is_renewed_on_its_connection(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    logins: list[float] = []

    def counted(*arguments: Any) -> float:
        logins.append(authenticate(*arguments))
        return logins[-1]

    monkeypatch.setattr(node_client, "authenticate", counted)
    file = secured.folder / "short.properties"
    file.write_text("\n".join(login("PLAIN", "alice", "alice-secret")))
    (address,) = parse_addresses(secured.node.listener("SHORT"))
    with NodeConnector(config=read_client_config(file), timeout=20)(address) as client:
        deadline = time.monotonic() + 60
        while len(logins) < 3:  # the node ends a connection whose session is over
            assert client.ask("describe_cluster", range(2), _describe).cluster_id == secured.node.cluster_id
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert all(0 < lasts <= 0.85 * SESSION_MS / 1000 for lasts in at_least_one(logins))


def _describe(module: Any) -> Any:
    return module.DescribeClusterRequest(include_cluster_authorized_operations=False)


def test_the_command_line_follows_with_the_properties_of_kafkas_tools(secured: Secured, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("\n".join([*login("SCRAM-SHA-512", "bob", "bob-secret"), *secured.trusting("SASL_SSL")]))
    words = ["import", "--follow", "--quorum", secured.node.listener("BOTH"), "--command-config", file, "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "kraftlake.cli", *map(str, words), secured.node.metadata_directory, tmp_path / "lake"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    ) as follower:  # fmt: skip
        assert follower.stdout is not None
        try:
            while json.loads(follower.stdout.readline())["endOffset"] < 5:
                pass
        finally:
            follower.send_signal(signal.SIGINT)
            assert follower.wait(timeout=60) == 130


def test_a_plan_is_applied_over_tls_and_logins_and_a_missing_right_is_named(secured: Secured) -> None:
    topic = NewTopic("orders", 1, 1, config={"retention.ms": "600000"})
    secured.node.admin.create_topics([topic])["orders"].result(timeout=60)
    then = kraftlake.open(secured.node.controller).end_offset - 1
    entry = ConfigEntry("retention.ms", "5", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[entry])
    secured.node.admin.incremental_alter_configs([resource])[resource].result(timeout=60)
    source = kraftlake.open(secured.node.controller)
    plan, journal = source.plan_undo(then), secured.folder / "journal"
    file = secured.folder / "client.properties"
    for listener, protocol in (("BOTH", "SASL_SSL"), ("SHORT", "SASL_PLAINTEXT")):
        trust = secured.trusting(protocol) if protocol == "SASL_SSL" else []
        mechanism = "SCRAM-SHA-512" if listener == "BOTH" else "SCRAM-SHA-256"
        file.write_text("\n".join([*trust, *login(mechanism, "eve", "eve-secret", protocol=protocol)]))
        with pytest.raises(MissingRightError, match="User:eve needs an ACL for DescribeConfigs on topic orders"):
            plan.apply(secured.node.listener(listener), journal=journal, command_config=file)
    rule = AclBinding(
        ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:eve", "*", AclOperation.DESCRIBE_CONFIGS,
        AclPermissionType.ALLOW,
    )  # fmt: skip
    secured.node.admin.create_acls([rule])[rule].result(timeout=60)
    with pytest.raises(ApplyError, match="User:eve needs an ACL for AlterConfigs on the resource"):
        plan.apply(secured.node.listener("SHORT"), journal=journal, command_config=file)
    file.write_text(
        "\n".join([*secured.trusting("SASL_SSL"), *login("SCRAM-SHA-512", "bob", "bob-secret", protocol="SASL_SSL")])
    )
    found = plan.apply(secured.node.listener("BOTH"), journal=journal, command_config=file)
    assert [one.outcome for one in found.steps] == ["applied"]
    assert "secret" not in journal.read_text().replace('"secret":false', "")
