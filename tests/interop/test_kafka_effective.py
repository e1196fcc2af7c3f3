"""The configs and quotas in effect, beside the answers of a real Kafka 4.4 node to DescribeConfigs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

import kraftlake
from kraftlake.diagnosis.effective.configs import effective_configs
from kraftlake.diagnosis.effective.subject import Subject
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_connector import connector_of
from kraftlake.publisher.described_configs import DescribedConfig
from kraftlake.runtime.java_properties import parse_properties
from tests.interop.kafka_admin import KafkaAdmin
from tests.kafka_node import KafkaNode, started_node

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="it starts a Kafka node"),
]

STATIC = {
    "log.retention.hours": "48",
    "log.roll.jitter.hours": "1",
    "log.cleanup.policy": "compact,delete",
    "min.insync.replicas": "1",
    "message.max.bytes": "2000000",
    "ssl.truststore.password": "hush",
    "num.replica.fetchers": "2",
    "my.plugin.setting": "x",
    "listener.name.plaintext.max.connections": "77",
    "group.consumer.session.timeout.ms": "50000",
    "group.share.record.lock.duration.ms": "20000",
    "group.consumer.assignors": "range",
}
CHANGES = {
    ("TOPIC", "a"): {"retention.ms": "60000", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1e-1"},
    ("TOPIC", "b"): {"segment.bytes": "2097152", "leader.replication.throttled.replicas": "0:1"},
    ("BROKER", "1"): {
        "log.retention.ms": "7200000", "num.io.threads": "3", "leader.replication.throttled.rate": "1000",
        "listener.name.plaintext.max.connections": "66", "max.connections.per.ip.overrides": "127.0.0.1:99",
    },
    ("BROKER", ""): {
        "log.flush.interval.ms": "9000", "unclean.leader.election.enable": "true", "compression.type": "zstd",
        "log.retention.ms": "8000000", "max.connections": "9000",
    },
    ("GROUP", "g"): {"consumer.session.timeout.ms": "46000", "share.auto.offset.reset": "earliest"},
    ("CLIENT_METRICS", "m"): {"interval.ms": "10000", "metrics": "org.apache.kafka."},
}  # fmt: skip
ASKED = {
    "topic/a": (2, "a"), "topic/b": (2, "b"), "topic/plain": (2, "plain"), "broker/1": (4, "1"), "broker/": (4, ""),
    "group/g": (32, "g"), "group/other": (32, "other"), "client-metrics/m": (16, "m"),
}  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    with started_node(tmp_path_factory.mktemp("effective"), settings=STATIC) as started:
        futures = started.admin.create_topics([NewTopic(name, 1, 1) for name in ("a", "b", "plain")])
        for future in futures.values():
            future.result()
        admin = KafkaAdmin(started.bootstrap)
        try:
            for (kind, name), configs in CHANGES.items():
                for key, value in configs.items():
                    admin.set_config(kind, name, key, value)
        finally:
            admin.close()
        yield started


def described(node: KafkaNode, kind: int, name: str) -> dict[str, Any]:
    """What the node answers: by name the value, the source, whether it is a secret and read-only, and the synonyms."""

    def request(module: Any) -> Any:
        resource = module.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        return module.DescribeConfigsRequest(
            resources=(resource,), include_synonyms=True, include_documentation=False
        )  # fmt: skip

    (address,) = parse_addresses(node.bootstrap)
    with connector_of(None, warn=print)(address) as client:
        (result,) = client.ask("describe_configs", range(4, 5), request).results
    assert result.error_code == 0, result.error_message
    return {
        one.name: (
            one.value, int(one.config_source), one.is_sensitive, one.read_only,
            [(synonym.name, synonym.value, int(synonym.source)) for synonym in one.synonyms],
        )
        for one in result.configs
    }  # fmt: skip


def ours(one: DescribedConfig) -> tuple[Any, ...]:
    def shown(value: str | None) -> str | None:
        return None if one.is_sensitive else value

    synonyms = [(synonym.name, shown(synonym.value), int(synonym.source)) for synonym in one.synonyms]
    return shown(one.value), int(one.source), one.is_sensitive, one.read_only, synonyms


@pytest.mark.parametrize("path", ASKED)
def test_each_value_and_its_layers_are_those_that_the_node_describes(node: KafkaNode, path: str) -> None:
    static = parse_properties((node.folder / "server.properties").read_bytes())
    broker = None if path.startswith(("broker", "client")) else 1
    theirs = described(node, *ASKED[path])
    image = kraftlake.open(node.metadata_directory).image()
    found = effective_configs(image, Subject.parse(path), broker=broker, static=static)
    assert {one.config.name: ours(one.config) for one in found} == theirs
