"""A broker of a lake with a listener of each kind, and how Kafka's clients get in at each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
from confluent_kafka.admin import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from kraftlake.server.node_config import ListenerAddress
from tests.certificates import Identity, authority, issued
from tests.server.broker.lake_cluster import LakeCluster

LISTENERS = {"SSL": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice", "alice-secret"
_PLAIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
_MODULES = {mechanism: "scram.Scram" if "SCRAM" in mechanism else "plain.Plain" for mechanism in MECHANISMS}


def settings(node: Identity, clients: Identity) -> dict[str, str]:
    """The settings of the broker; `clients` signs the certificates of clients."""
    return {
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in (LISTENERS | {"PLAINTEXT": "PLAINTEXT"}).items()
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM", "ssl.keystore.key": node.key_pem(), "ssl.keystore.certificate.chain": node.pem,
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": clients.pem,
        "listener.name.mutual.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{f"listener.name.{name}.plain.sasl.jaas.config": _PLAIN for name in ("login", "both")},
    }  # fmt: skip


@attrs.frozen(kw_only=True)
class Way:
    """A way into the cluster: a listener and, where it has logins, a mechanism, with the files of the certificates."""

    listener: str
    mechanism: str | None
    port: int
    folder: Path
    password: str = PASSWORD

    @property
    def protocol(self) -> str:
        """The security protocol."""
        return LISTENERS.get(self.listener, self.listener)

    @property
    def bootstrap(self) -> str:
        """HOST:PORT."""
        return f"127.0.0.1:{self.port}"

    @property
    def authority(self) -> str:
        """The file of the authority of the broker's certificate."""
        return str(self.folder / "ca.pem")

    @property
    def certificate(self) -> str | None:
        """The file of the client's key and certificate, where one is asked for."""
        return str(self.folder / "client.pem") if self.listener == "MUTUAL" else None

    def of_librdkafka(self) -> dict[str, str]:
        """The configuration of librdkafka."""
        found = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if "SSL" in self.protocol:
            found["ssl.ca.location"] = self.authority
        if self.certificate:
            found |= {"ssl.certificate.location": self.certificate, "ssl.key.location": self.certificate}
        if self.mechanism:
            found |= {"sasl.mechanism": self.mechanism, "sasl.username": USER, "sasl.password": self.password}
        return found

    def of_java(self) -> str:
        """The properties of Kafka's own clients."""
        lines = [f"security.protocol={self.protocol}"]
        if "SSL" in self.protocol:
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.authority}"]
        if self.certificate:
            lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={self.certificate}"]
        if self.mechanism:
            module = f"org.apache.kafka.common.security.{_MODULES[self.mechanism]}LoginModule"
            lines += [
                f"sasl.mechanism={self.mechanism}",
                f'sasl.jaas.config={module} required username="{USER}" password="{self.password}";',
            ]
        return "\n".join(lines)


@attrs.frozen(kw_only=True)
class Secured:
    """The cluster, and the certificates of its broker and its client."""

    cluster: LakeCluster
    folder: Path

    def way(self, listener: str, mechanism: str | None = None) -> Way:
        """A way in."""
        ports = {one.name: one.port for one in self.cluster.members[1].server.listeners}
        return Way(listener=listener, mechanism=mechanism, port=ports[listener], folder=self.folder)

    def ways(self) -> list[Way]:
        """All ways in."""
        return [
            self.way("PLAINTEXT"), self.way("SSL"), self.way("MUTUAL"),
            *(self.way(listener, mechanism) for listener in ("LOGIN", "BOTH") for mechanism in MECHANISMS),
        ]  # fmt: skip


@contextmanager
def secured_cluster(folder: Path) -> Iterator[Secured]:
    """A cluster of a controller and a broker, with the user alice."""
    ca = authority()
    client = issued(ca, "operator", hosts=())
    (folder / "ca.pem").write_text(ca.pem)
    (folder / "client.pem").write_text(client.key_pem() + client.pem)
    cluster = LakeCluster(folder)
    try:
        cluster.start_controller(101)
        more = tuple(ListenerAddress(name=name, host="127.0.0.1", port=0) for name in LISTENERS)
        cluster.start_broker(1, settings(issued(ca, "node"), ca), more_listeners=more)
        cluster.await_unfenced(1)
        admin = cluster.admin()
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            made = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for done in admin.alter_user_scram_credentials([made]).values():
                done.result(timeout=120)
        yield Secured(cluster=cluster, folder=folder)
    finally:
        cluster.stop()
