"""Logins and certificates at the listeners of a lake's cluster and of Kafka's: who comes in, as whom, which errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import attrs
import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography import x509

from kraftlake.server.node_config import ListenerAddress
from tests.at_least_one import at_least_one
from tests.certificates import authority, issued
from tests.kafka_node import started_node
from tests.server.broker.lake_cluster import LakeCluster
from tests.server.broker.login_cases import LISTENERS, UNKNOWN_USER, USERS, LoginSide, cases, settings

pytestmark = pytest.mark.spark
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SAMPLE = 30
_REFUSED = "SASL_AUTHENTICATION_FAILED"
_OF_PROOFS = (["closed"], [_REFUSED, "closed"])
KNOWN_DIFFERENCES = {
    **{
        f"{mechanism} first {UNKNOWN_USER}": (["NONE", _REFUSED, "closed"], ["NONE", "NONE", _REFUSED, "closed"])
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
    },
    **{
        f"{mechanism} {proof}": _OF_PROOFS
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for proof in ("an empty proof", "a short proof")
    },
    "SCRAM-SHA-512 another proof": _OF_PROOFS,
}
"""Kafka refuses an unknown user at once, and ends the connection without an answer for a proof of a wrong length.

By the name of the case: the outcome with Kafka, and ours.
"""


def add_users(admin: AdminClient) -> None:
    for user, password in USERS.items():
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            made = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
            for done in admin.alter_user_scram_credentials([made]).values():
                done.result(timeout=120)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LoginSide, LoginSide]]:
    folder = tmp_path_factory.mktemp("logins")
    ca = authority()
    certificates = write_certificates(folder)
    (folder / "ca.pem").write_text(ca.pem)
    values = settings(issued(ca, "node"), certificates_authority)
    with ExitStack() as stack:
        node = stack.enter_context(started_node(folder / "kafka", listeners=LISTENERS, settings=values))
        add_users(node.admin)
        cluster = LakeCluster(folder)
        stack.callback(cluster.stop)
        cluster.start_controller(101, **{"delegation.token.secret.key": values["delegation.token.secret.key"]})
        protocols = ",".join(
            f"{name}:{protocol}" for name, protocol in (LISTENERS | {"PLAINTEXT": "PLAINTEXT"}).items()
        )
        more = tuple(ListenerAddress(name=name, host="127.0.0.1", port=0) for name in LISTENERS)
        ours = values | {"listener.security.protocol.map": protocols, "inter.broker.listener.name": "PLAINTEXT"}
        cluster.start_broker(1, ours, more_listeners=more)
        cluster.await_unfenced(1)
        admin = cluster.admin()
        add_users(admin)
        theirs = {name: port for name, (_, port) in node.more_listeners.items()} | {"PLAINTEXT": node.broker_port}
        found = [
            LoginSide(name=name, ports=ports, authority=folder / "ca.pem", certificates=certificates)
            for name, ports in (
                ("kafka", theirs), ("ours", {one.name: one.port for one in cluster.members[1].server.listeners}),
            )
        ]  # fmt: skip
        for side in found:
            side.make_token()
        yield found[0], found[1]


certificates_authority = authority("of clients")


def write_certificates(folder: Path) -> dict[str, Path]:
    made = {
        "operator": issued(certificates_authority, "operator", hosts=()),
        "plain": issued(certificates_authority, 'a, "b" + c', hosts=()),
        "many": many_names(),
        "stranger": issued(authority(), "operator", hosts=()),
        "expired": issued(certificates_authority, "operator", hosts=(), expired=True),
    }
    found = {}
    for name, one in made.items():
        found[name] = folder / f"{name}.pem"
        found[name].write_text(one.key_pem() + one.pem)
    return found


def many_names() -> object:
    """A certificate whose subject has an attribute of each kind."""
    plain = issued(certificates_authority, "x", hosts=())
    oid = x509.oid.NameOID
    subject = x509.Name(
        [
            x509.NameAttribute(oid.COUNTRY_NAME, "DE"), x509.NameAttribute(oid.STATE_OR_PROVINCE_NAME, "B=E"),
            x509.NameAttribute(oid.LOCALITY_NAME, " Berlin#"), x509.NameAttribute(oid.ORGANIZATION_NAME, "E; <x>"),
            x509.NameAttribute(oid.ORGANIZATIONAL_UNIT_NAME, "é"), x509.NameAttribute(oid.DOMAIN_COMPONENT, "example"),
            x509.NameAttribute(oid.USER_ID, "u1"), x509.NameAttribute(oid.STREET_ADDRESS, "s\\t"),
            x509.NameAttribute(oid.EMAIL_ADDRESS, "a@b.example"), x509.NameAttribute(oid.COMMON_NAME, "me"),
        ]
    )  # fmt: skip
    from cryptography.hazmat.primitives import hashes

    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(plain.certificate.issuer)
        .public_key(plain.key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(plain.certificate.not_valid_before_utc)
        .not_valid_after(plain.certificate.not_valid_after_utc)
        .sign(certificates_authority.key, hashes.SHA256())
    )
    return attrs.evolve(plain, certificate=certificate)


def test_the_same_clients_come_in_as_the_same_users_or_meet_the_same_errors(sides: tuple[LoginSide, LoginSide]) -> None:
    asked = cases() if LONG else Random("logins").sample(cases(), SAMPLE)
    wrong, seen = {}, 0
    for case in at_least_one(asked):
        kafka, ours = (case.outcome(side) for side in sides)
        if case.name in KNOWN_DIFFERENCES:
            assert (kafka, ours) == KNOWN_DIFFERENCES[case.name], case
        elif kafka != ours:
            wrong[f"{case.listener}: {case.name}"] = (kafka, ours)
        seen += 1
    assert wrong == {}, "by listener and case: the outcome with Kafka, and ours"
    assert seen == len(asked)
