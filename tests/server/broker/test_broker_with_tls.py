"""`kraftlake broker` over listeners with TLS and logins, as a user who may do what brokers have to alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from tests.certificates import PASSWORD, authority, issued
from tests.kafka_node import started_node
from tests.replica_manager.kafka_follower import PATIENCE
from tests.server.broker.broker_process import BrokerProcess, partition_of, segments
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: a node of its own"),
]
LISTENERS = {"CONTROLLER_BOTH": "SASL_SSL", "BOTH": "SASL_SSL"}
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
NAME = TopicPartition("secured", 0)


def test_a_broker_logs_in_over_tls_and_needs_cluster_action_alone(tmp_path: Path) -> None:
    trusted = authority()
    server = issued(trusted, "node")
    settings = {
        "ssl.keystore.location": str(server.write_keystore(tmp_path / "node.p12")),
        "ssl.keystore.password": PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    for name in LISTENERS:
        settings[f"listener.name.{name.lower()}.sasl.enabled.mechanisms"] = "PLAIN"
        settings[f"listener.name.{name.lower()}.plain.sasl.jaas.config"] = f'{LOGIN} user_broker="secret";'
    (tmp_path / "authority.pem").write_text(trusted.pem)
    client = tmp_path / "client.properties"
    client.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={tmp_path / 'authority.pem'}\n"
        f'sasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN} username="broker" password="secret";\n'
    )
    with started_node(tmp_path / "kafka", settings=settings, listeners=LISTENERS) as node:
        broker = BrokerProcess(
            controllers=node.listener("CONTROLLER_BOTH"), folder=tmp_path / "ours", listener="BOTH",
            options=("--command-config", str(client), "--cluster-id", node.cluster_id),
        )  # fmt: skip
        broker.start()
        assert broker.wait() == 1
        assert (
            "an ACL is missing that allows CLUSTER_ACTION on the cluster for User:broker"
            in broker.plan.log_file.read_text()
        )
        binding = AclBinding(
            ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:broker", "*",
            AclOperation.CLUSTER_ACTION, AclPermissionType.ALLOW,
        )  # fmt: skip
        node.admin.create_acls([binding])[binding].result(timeout=PATIENCE)
        try:
            broker.start()
            broker.await_running()
            topic = NewTopic(NAME.topic, 1, replica_assignment=[[1, 7]])
            node.admin.create_topics([topic])[NAME.topic].result(timeout=PATIENCE)
            producer = Producer({"bootstrap.servers": node.bootstrap, "acks": "all"})
            for number in range(1000):
                producer.produce(NAME.topic, f"value {number}".encode())
            assert producer.flush(PATIENCE) == 0
            wait_for(lambda: set(partition_of(node.controller, NAME).isr) == {1, 7}, "it is in the ISR")
            wait_for(
                lambda: broker.log_of(NAME) == segments(node.log_directory / str(NAME)),
                "its log has the leader's bytes",
            )
            assert broker.stop() == 0
            assert "secret" not in broker.plan.log_file.read_text()
        finally:
            broker.kill()
