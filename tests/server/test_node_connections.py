"""The security of the nodes' own connections: which settings give it, and clusters whose nodes show certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

import kraftlake
from kraftlake.protocol.client_config import ClientConfig
from kraftlake.runtime.errors import UsageError
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_server import BrokerServer
from kraftlake.server.controller.controller_config import ControllerServerConfig
from kraftlake.server.controller.controller_server import ControllerServer
from kraftlake.server.node_config import STANDARD_AUTHORIZER, ListenerAddress, NodeSettings
from kraftlake.server.node_connections import BETWEEN_BROKERS, TO_CONTROLLERS, node_client
from tests.certificates import Identity, authority, issued
from tests.server.broker.lake_cluster import QUICK, SESSION, LakeCluster, Member
from tests.waiting import PATIENCE, wait_for

SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="node" password="s3cret";'
CA = authority()


def client(listener: str, mechanism: str = BETWEEN_BROKERS, **settings: str) -> ClientConfig:
    values = {name.replace("_", "."): value for name, value in settings.items()}
    return node_client(NodeSettings(values=values, source="n.properties"), listener, mechanism)


def test_without_settings_nodes_connect_in_the_plain() -> None:
    for listener, mechanism in (("PLAINTEXT", BETWEEN_BROKERS), ("CONTROLLER", TO_CONTROLLERS)):
        made = client(listener, mechanism)
        assert (made.tls, made.sasl) == (None, None)


def test_a_node_logs_in_as_its_own_listener_of_that_name_says() -> None:
    more = {
        "listener.security.protocol.map": "B:SASL_SSL,C:SASL_PLAINTEXT", "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.b.scram-sha-512.sasl.jaas.config": SCRAM,
        "listener.name.c.plain.sasl.jaas.config": SCRAM.replace("scram.Scram", "plain.Plain").replace("node", "peer"),
        "ssl.truststore.type": "PEM", "ssl.truststore.certificates": CA.pem,
    }  # fmt: skip
    between, controllers = client("B", **more), client("C", TO_CONTROLLERS, **more)
    assert between.sasl is not None
    assert (between.sasl.mechanism, between.sasl.user, between.sasl.password) == ("SCRAM-SHA-512", "node", "s3cret")
    assert between.tls is not None
    assert between.tls.truststore is not None
    assert controllers.sasl is not None
    assert (controllers.sasl.mechanism, controllers.sasl.user, controllers.tls) == ("PLAIN", "peer", None)
    assert "s3cret" not in f"{between!r} {controllers!r}"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {},
            "sasl.mechanism.inter.broker.protocol is GSSAPI, Kafka's default, in n.properties: nodes log in by PLAIN,",
        ),
        (
            {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
            "This node has no login at the listener SASL_SSL: give username and password in "
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config, in n.properties.",
        ),
        (
            {
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": SCRAM.replace("password=", "word="),
            },
            "This node has no login at the listener SASL_SSL",
        ),
    ],
)
def test_a_node_that_could_not_log_in_is_refused_at_its_start(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as fault:
        client("SASL_SSL", **settings)
    assert str(fault.value).startswith(sentence)
    assert "s3cret" not in str(fault.value)


def test_brokers_take_the_mechanism_by_which_they_log_in() -> None:
    listener = ListenerAddress(name="SASL_PLAINTEXT", host="127.0.0.1", port=0)
    settings = {
        "sasl.enabled.mechanisms": "SCRAM-SHA-256", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": SCRAM,
    }  # fmt: skip
    with pytest.raises(
        UsageError, match=r"is SCRAM-SHA-512 in the settings, which is none of sasl\.enabled\.mechanisms"
    ):
        BrokerConfig(broker_id=1, lake="lake", log_dirs=("d",), listener=listener, settings=settings)
    both = {**settings, "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512"}
    made = BrokerConfig(broker_id=1, lake="lake", log_dirs=("d",), listener=listener, settings=both)
    assert made.to_brokers.principal == "User:node"


def test_controllers_reach_each_other_at_the_first_of_their_names() -> None:
    listeners = tuple(ListenerAddress(name=name, host="127.0.0.1", port=0) for name in ("A", "B"))

    def between(**settings: str) -> str:
        values = {name.replace("_", "."): value for name, value in settings.items()}
        return ControllerServerConfig(
            lake="lake", node_id=1, listeners=listeners, settings=NodeSettings(values=values)
        ).between_controllers  # fmt: skip

    assert between() == "A"
    assert between(controller_listener_names="B,A") == "B"


class Secured(LakeCluster):
    """Nodes with TLS that show each other certificates; brokers have a listener for clients beside."""

    def settings(self, identity: Identity) -> dict[str, str]:
        keys = {"ssl.keystore.key": identity.key_pem(), "ssl.keystore.certificate.chain": identity.pem}
        return {
            **SESSION, **QUICK, **keys, "ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": CA.pem, "controller.listener.names": "CONTROLLER,OTHER",
            "listener.security.protocol.map": "CONTROLLER:SSL,OTHER:PLAINTEXT,BROKERS:SSL,CLIENTS:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS", "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/", "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:node;User:ANONYMOUS",
        }  # fmt: skip

    def controller(self, node_id: int) -> None:
        names = ("OTHER", "CONTROLLER")
        config = ControllerServerConfig(
            lake=str(self.lake), node_id=node_id,
            listeners=tuple(ListenerAddress(name=name, host="127.0.0.1", port=0) for name in names),
            settings=NodeSettings(values=self.settings(issued(CA, "node"))),
        )  # fmt: skip
        self.members[node_id] = Member(lambda stop: ControllerServer(config, stop=stop))

    def broker(self, node_id: int, identity: Identity | None = None, more: Mapping[str, str] | None = None) -> None:
        config = BrokerConfig(
            broker_id=node_id, lake=str(self.lake), log_dirs=(str(self.folder / f"broker-{node_id}"),),
            listener=ListenerAddress(name="BROKERS", host="127.0.0.1", port=0),
            more_listeners=(ListenerAddress(name="CLIENTS", host="127.0.0.1", port=0),),
            settings={**self.settings(identity or issued(CA, "node")), **(more or {})},
        )  # fmt: skip
        self.members[node_id] = Member(lambda stop: BrokerServer(config, stop=stop))

    def clients(self) -> AdminClient:
        port = self.members[1].server.listeners[1].port
        return AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 2})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    try:
        made.controller(101)
        made.controller(102)
        made.broker(1)
        made.broker(2)
        made.await_unfenced(1, 2)
        wait_for(lambda: {101, 102} <= {*kraftlake.open(made.lake).image().cluster.controllers}, "both are registered")
        yield made
    finally:
        made.stop()


def test_nodes_with_certificates_are_one_cluster(cluster: Secured) -> None:
    """Registration, heartbeats, the standby, forwarding, fetchers and ISRs all go over TLS."""
    image = kraftlake.open(cluster.lake).image()
    assert {name: one.security_protocol for name, one in image.cluster.brokers[1].listeners.items()} == {
        "BROKERS": 1, "CLIENTS": 0,
    }  # fmt: skip
    assert {name: one.security_protocol for name, one in image.cluster.controllers[102].listeners.items()} == {
        "OTHER": 0, "CONTROLLER": 1,
    }  # fmt: skip
    admin = cluster.clients()
    admin.create_topics([NewTopic("t", 4, 2, config={"min.insync.replicas": "2"})])["t"].result(PATIENCE)

    def in_sync() -> bool:
        topic = kraftlake.open(cluster.lake).image().topics.get_topic("t")
        return topic is not None and all(len(one.isr) == 2 for one in topic.partitions.values())

    wait_for(in_sync, "followers fetch from leaders")


def test_a_broker_whose_name_has_no_right_joins_nothing(cluster: Secured, capfd: pytest.CaptureFixture[str]) -> None:
    cluster.broker(3, issued(CA, "stranger"))
    member = cluster.members.pop(3)
    try:
        wait_for(lambda: "error=CLUSTER_AUTHORIZATION_FAILED" in capfd.readouterr().err, "it says so")
    finally:
        member.stop()
    assert 3 not in kraftlake.open(cluster.lake).image().cluster.brokers


def test_a_broker_with_a_certificate_of_another_authority_reaches_no_controller(
    cluster: Secured, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.broker(4, issued(authority("another"), "node"))
    member: Any = cluster.members.pop(4)
    try:
        wait_for(lambda: "does not accept the certificate of ssl.keystore" in capfd.readouterr().err, "it says so")
    finally:
        member.stop()
    assert 4 not in kraftlake.open(cluster.lake).image().cluster.brokers


def test_at_the_nodes_listener_no_one_is_known_without_a_certificate(cluster: Secured) -> None:
    port = cluster.members[1].server.listeners[0].port
    plain = AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": "SSL", "ssl.ca.pem": CA.pem, "log_level": 0,
            "socket.timeout.ms": 3000,
        }
    )  # fmt: skip
    with pytest.raises(KafkaException):
        plain.list_topics(timeout=1)
