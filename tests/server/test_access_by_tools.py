"""Kafka's tools, and with them its Java client, change and describe access at a broker and a controller on a lake."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kraftlake.server.node_config import STANDARD_AUTHORIZER
from tests.interop.kafka_tools import KafkaTools
from tests.server.broker.lake_cluster import LakeCluster
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: a JVM of Kafka's tools"),
]
SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
ACL = (
    "--allow-principal",
    "User:alice",
    "--operation",
    "Read",
    "--topic",
    "orders",
    "--resource-pattern-type",
    "prefixed",
)
USER = ("--entity-type", "users", "--entity-name", "alice")


class Asked:
    """A cluster that tools ask by one of its nodes; `at` are the words that name the node."""

    def __init__(self, tools: KafkaTools, *at: object) -> None:
        self._tools, self._at = tools, at

    def __call__(self, tool: str, *words: object) -> str:
        """What a tool says, which must not fail."""
        said = self._tools.run(f"org.apache.kafka.tools.{tool}", *self._at, *words)
        assert said.code == 0, said
        return said.out + said.err


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeCluster]:
    made = LakeCluster(tmp_path_factory.mktemp("tools"))
    try:
        made.start_controller(101, **SETTINGS)
        made.start_broker(1, SETTINGS)
        made.await_unfenced(1)
        yield made
    finally:
        made.stop()


@pytest.fixture(params=["broker", "controller"])
def ask(request: pytest.FixtureRequest, cluster: LakeCluster) -> Iterator[Asked]:
    tools = KafkaTools()
    if request.param == "broker":
        yield Asked(tools, "--bootstrap-server", cluster.address_of(1))
    else:
        port = cluster.members[101].server.listeners[0].port
        yield Asked(tools, "--bootstrap-controller", f"127.0.0.1:{port}")
    tools.close()


def test_acls_are_added_listed_and_removed(ask: Asked) -> None:
    ask("AclCommand", "--add", *ACL)
    wait_for(lambda: "User:alice" in ask("AclCommand", "--list"), "it is listed")
    listed = ask("AclCommand", "--list", "--topic", "orders-5", "--resource-pattern-type", "match")
    assert "patternType=PREFIXED" in listed
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in listed
    ask("AclCommand", "--remove", "--force", *ACL)
    wait_for(lambda: "User:alice" not in ask("AclCommand", "--list"), "it is gone")


def test_features_are_changed(ask: Asked) -> None:
    assert "can be downgraded" in ask("FeatureCommand", "downgrade", "--feature", "share.version=0", "--dry-run")
    ask("FeatureCommand", "downgrade", "--feature", "group.version=0")
    ask("FeatureCommand", "upgrade", "--feature", "group.version=1")
    assert "Feature: group.version" in ask("FeatureCommand", "describe")


def test_quotas_and_users_are_changed_and_described(cluster: LakeCluster) -> None:
    tools = KafkaTools()
    ask = Asked(tools, "--bootstrap-server", cluster.address_of(1))
    try:
        ask("ConfigCommand", "--alter", *USER, "--add-config", "producer_byte_rate=1024,request_percentage=50")
        ask("ConfigCommand", "--alter", *USER, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=a-secret]")

        def described() -> str:
            return ask("ConfigCommand", "--describe", *USER)

        wait_for(lambda: "SCRAM-SHA-256=iterations=8192" in described(), "the user is described")
        said = described()
        assert "producer_byte_rate=1024.0" in said
        assert "request_percentage=50.0" in said
        assert "secret" not in said
        ask("ConfigCommand", "--alter", *USER, "--delete-config", "SCRAM-SHA-256")
        ask("ConfigCommand", "--alter", *USER, "--delete-config", "producer_byte_rate,request_percentage")
        wait_for(lambda: "=" not in described().replace("alice", ""), "nothing is left")
    finally:
        tools.close()
