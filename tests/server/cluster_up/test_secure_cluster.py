"""A secure cluster of processes, as by `cluster up --secure`: who comes in, what they may do, and what is logged."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka import admin as ck

import kraftlake
from kraftlake.server.cluster_up.cluster_security import ClusterSecurity
from kraftlake.server.cluster_up.cluster_up import secure
from tests.server.lake_processes import LakeProcesses
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.xdist_group("secure_cluster")
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
long = pytest.mark.skipif(not LONG, reason="make test-long: a JVM, and a second start")
BROKERS, CONTROLLERS = 2, 2 if LONG else 1
ALICE = "alice-secret"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeProcesses]:
    folder = tmp_path_factory.mktemp("secure")
    with LakeProcesses(folder, brokers=BROKERS, controllers=CONTROLLERS, secure=True) as made:
        made.create("orders", 2, 2, min_insync_replicas="1")
        credential = ck.ScramCredentialInfo(ck.ScramMechanism.SCRAM_SHA_512, 4096)
        upsertion = ck.UserScramCredentialUpsertion("alice", credential, ALICE.encode(), None)
        done(made, lambda admin: admin.alter_user_scram_credentials([upsertion]))
        yield made


def done(cluster: LakeProcesses, change: Callable[[ck.AdminClient], dict[Any, Any]]) -> None:
    """Have the admin make a change, and wait until it is made."""
    admin = ck.AdminClient({**cluster.client, "log_level": 2})
    for future in change(admin).values():
        future.result(PATIENCE)


def alice(cluster: LakeProcesses, password: str = ALICE) -> dict[str, str]:
    return {**cluster.client, "sasl.username": "alice", "sasl.password": password}


def acl(principal: str, operation: ck.AclOperation) -> ck.AclBinding:
    return ck.AclBinding(
        ck.ResourceType.TOPIC, "orders", ck.ResourcePatternType.LITERAL, principal, "*", operation,
        ck.AclPermissionType.ALLOW,
    )  # fmt: skip


def written(client: dict[str, str], *values: bytes) -> list[KafkaError | None]:
    """The faults of writing the values."""
    faults: list[KafkaError | None] = []
    producer = Producer({**client, "log_level": 2, "message.timeout.ms": 120_000})
    for value in values:
        producer.produce("orders", value, partition=0, on_delivery=lambda fault, _: faults.append(fault))
    assert producer.flush(PATIENCE) == 0
    return faults


def read(client: dict[str, str], value: bytes) -> int:
    """The offset of a value; a KafkaException where it may not be read."""
    consumer = Consumer({**client, "group.id": "none", "log_level": 2, "enable.auto.commit": False})
    consumer.assign([Place("orders", 0, 0)])
    try:
        for _ in range(int(PATIENCE)):
            for message in consumer.consume(1_000, timeout=1.0):
                if (fault := message.error()) is not None:
                    raise KafkaException(fault)
                if message.value() == value:
                    return int(message.offset())
    finally:
        consumer.close()
    raise AssertionError(f"{value!r} is not there")


def denied(cluster: LakeProcesses) -> list[bool]:
    """Whether alice may not see the topic, by each broker."""
    found = []
    for broker in cluster.brokers:
        client = ck.AdminClient({**alice(cluster), "bootstrap.servers": broker.address, "log_level": 2})
        fault = client.list_topics("orders", timeout=PATIENCE).topics["orders"].error
        found.append(fault is not None and fault.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED)
    return found


def test_the_admin_writes_and_reads(cluster: LakeProcesses) -> None:
    assert written(cluster.client, b"first") == [None]
    assert read(cluster.client, b"first") >= 0


def test_acls_decide_over_a_plain_user_and_a_removed_one_at_once(cluster: LakeProcesses) -> None:
    assert denied(cluster) == [True] * BROKERS
    binding = acl("User:alice", ck.AclOperation.WRITE)
    done(cluster, lambda admin: admin.create_acls([binding]))
    wait_for(lambda: not any(denied(cluster)), "every broker knows the ACL")
    assert written(alice(cluster), b"of alice") == [None]
    with pytest.raises(KafkaException) as fault:
        read(alice(cluster), b"of alice")
    assert fault.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    exact = ck.AclBindingFilter(
        binding.restype, binding.name, binding.resource_pattern_type, binding.principal, binding.host,
        binding.operation, binding.permission_type,
    )  # fmt: skip
    done(cluster, lambda admin: admin.delete_acls([exact]))
    wait_for(lambda: all(denied(cluster)), "the ACL is gone for brokers, too")
    (refused,) = written(alice(cluster), b"too late")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("mallory", "any"), ("admin", ALICE)])
def test_who_does_not_know_the_password_does_not_come_in(cluster: LakeProcesses, user: str, password: str) -> None:
    errors: list[KafkaError] = []
    client = ck.AdminClient(
        {
            **cluster.client, "sasl.username": user, "sasl.password": password, "log_level": 0,
            "error_cb": errors.append,
        }
    )  # fmt: skip
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
    codes = lambda: {client.poll(0.2), *(one.code() for one in errors)}  # noqa: E731
    wait_for(lambda: KafkaError._AUTHENTICATION in codes(), "the client says why")


def test_the_log_says_who_changed_what(cluster: LakeProcesses) -> None:
    source = kraftlake.open(cluster.lake)
    change = source.blame("topic/orders")
    logs = [str(node.plan.log_file) for node in cluster.controllers if "Principal = " in node.plan.log_file.read_text()]
    finding = source.attribution(logs).of(change.offset).authorizer
    assert finding is not None
    assert finding.named is not None
    assert (finding.named.principal, finding.named.request) == ("User:admin", "CreateTopics")


def test_no_secret_is_in_any_log_or_on_a_command_line(cluster: LakeProcesses) -> None:
    assert cluster.plan.security is not None
    secrets = [*cluster.plan.security.passwords.values(), ALICE]
    for node in cluster.nodes.values():
        text = node.plan.log_file.read_text()
        assert "started" in text
        assert node.pid is not None
        text += Path(f"/proc/{node.pid}/cmdline").read_text()
        assert not [secret for secret in secrets if secret in text], node.plan.name
        assert node.plan.properties_file.stat().st_mode & 0o077 == 0


@long
def test_the_cluster_goes_on_where_a_controller_and_a_broker_are_killed(cluster: LakeProcesses) -> None:
    epochs = {int(one["epoch"]): node for node in cluster.controllers for one in node.events("active")}
    active, broker = epochs[max(epochs)], cluster.brokers[1]
    active.kill()
    broker.kill()
    wait_for(
        lambda: any(int(one["epoch"]) > max(epochs) for node in cluster.controllers for one in node.events("active")),
        "the standby leads",
    )
    assert written(cluster.client, b"meanwhile") == [None]
    active.start()
    broker.start()
    cluster.await_alive()
    cluster.create("later", 1, 2)
    wait_for(lambda: all_in_sync(cluster), "both are in sync again")
    assert written(cluster.client, b"after") == [None]
    assert read(cluster.client, b"after") > read(cluster.client, b"meanwhile")


def all_in_sync(cluster: LakeProcesses) -> bool:
    found = [cluster.image().topics.get_topic(name) for name in ("orders", "later")]
    return all(one is not None and all(len(p.isr) == 2 for p in one.partitions.values()) for one in found)


@long
@pytest.mark.spark
def test_javas_clients_take_the_ready_file(cluster: LakeProcesses, tmp_path: Path) -> None:
    from tests.interop.kafka_tools import KafkaTools

    assert cluster.plan.security is not None
    file, tools = cluster.plan.security.client_properties, KafkaTools()

    def run(tool: str, *words: object, stdin: str = "", option: str = "--command-config") -> str:
        said = tools.run(
            f"org.apache.kafka.tools.{tool}", "--bootstrap-server", cluster.bootstrap, option, file, *words, stdin=stdin
        )
        assert said.code == 0, said
        return said.out

    try:
        run("TopicCommand", "--create", "--topic", "from-java", "--partitions", 1, "--replication-factor", 2)
        assert "from-java" in run("TopicCommand", "--list")
        run("ConsoleProducer", "--topic", "from-java", stdin="value-1\nvalue-2\n")
        said = run(
            "consumer.ConsoleConsumer", "--topic", "from-java", "--partition", 0, "--offset", "earliest",
            "--max-messages", 2, "--timeout-ms", 30_000,
        )  # fmt: skip
        assert re.findall(r"value-\d", said) == ["value-1", "value-2"]
        wrong = tmp_path / "wrong.properties"
        wrong.write_text(re.sub(r'password="[^"]*"', 'password="wrong"', file.read_text()))
        refused = tools.run(
            "org.apache.kafka.tools.TopicCommand", "--bootstrap-server", cluster.bootstrap, "--command-config", wrong,
            "--list",
        )  # fmt: skip
        assert refused.code != 0
        assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in refused.out
    finally:
        tools.close()


@long
@pytest.mark.filterwarnings("ignore:.* is deprecated. Use files:DeprecationWarning")
def test_kafka_python_takes_the_ready_arguments(cluster: LakeProcesses) -> None:
    import kafka

    assert cluster.plan.security is not None
    arguments = json.loads(cluster.plan.security.python_arguments.read_text())
    producer = kafka.KafkaProducer(**arguments)
    sent = producer.send("orders", b"from python", partition=1).get(60)
    producer.close()
    consumer = kafka.KafkaConsumer(**arguments, group_id=None, consumer_timeout_ms=60_000)
    consumer.assign([kafka.TopicPartition("orders", 1)])
    consumer.seek(kafka.TopicPartition("orders", 1), sent.offset)
    assert next(consumer).value == b"from python"
    consumer.close()


@long
def test_a_second_start_uses_what_there_is(cluster: LakeProcesses) -> None:
    security = cluster.plan.security
    assert security is not None
    before = {file: file.read_bytes() for file in security.folder.iterdir()}
    again = ClusterSecurity.at(security.folder)
    assert secure(cluster.plan, again) == []
    assert {file: file.read_bytes() for file in security.folder.iterdir()} == before
    assert not again.is_new
