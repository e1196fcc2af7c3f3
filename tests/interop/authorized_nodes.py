"""A cluster of Kafka with an authorizer whose logger says everything, and changes of it by three principals.

`python -m tests.interop.authorized_nodes FOLDER` records samples/authorized anew.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient

from kraftlake.diagnosis.attribution.causes import cause_of
from kraftlake.records import metadata_records as r
from tests.certificates import PASSWORD, authority, issued
from tests.interop.undone_nodes import AUTHORIZED, done, set_configs
from tests.kafka_node import KafkaNode, new_nodes

ALICE, BOB = "User:alice", "User:bob"
CAROL = "User:CN=Carol\\, Smith \\= ops"
"""The name of a certificate with a blank, a comma and an equals sign, as Kafka writes it."""
PRINCIPALS = (ALICE, BOB, CAROL)
CLUSTER = "kafka-cluster"
AUTHORIZER_LOG = "kafka-authorizer.log"
_SECURITY = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_LOGGER = """
appender.authorizer.type=File
appender.authorizer.name=authorizer
appender.authorizer.fileName={file}
appender.authorizer.layout.type=PatternLayout
appender.authorizer.layout.pattern=[%d] %p %m (%c)%n
logger.authorizer.name=kafka.authorizer.logger
logger.authorizer.level=DEBUG
logger.authorizer.additivity=false
logger.authorizer.appenderRefs=authorizer
logger.authorizer.appenderRef.authorizer.ref=authorizer
"""
"""As in the log4j2 configuration that comes with Kafka, but for the level."""


@attrs.frozen(kw_only=True)
class Authorized:
    """A controller, node 1, and two brokers; a client of each principal."""

    nodes: Mapping[int, KafkaNode]
    clients: Mapping[str, AdminClient]

    @property
    def logs(self) -> list[str]:
        """The authorizer logs of all nodes."""
        return [str(node.folder / AUTHORIZER_LOG) for node in self.nodes.values()]

    @property
    def metadata(self) -> Path:
        """The controller's metadata log."""
        return self.nodes[1].metadata_directory


@contextmanager
def authorized_nodes(folder: Path) -> Iterator[Authorized]:
    """The running cluster; its processes end with the block."""
    ca = authority()
    folder.mkdir(parents=True, exist_ok=True)
    carol = issued(ca, "Carol, Smith = ops", hosts=())
    for name, content in {"ca.pem": ca.pem, "carol.pem": carol.pem, "carol.key": carol.key_pem()}.items():
        (folder / name).write_text(content, "utf-8")
    secured = AUTHORIZED | {
        "ssl.keystore.location": str(issued(ca, "node").write_keystore(folder / "node.p12")),
        "ssl.truststore.location": str(ca.write_truststore(folder / "clients.p12")),
        **dict.fromkeys(("ssl.keystore.password", "ssl.truststore.password"), PASSWORD),
        **dict.fromkeys(("ssl.keystore.type", "ssl.truststore.type"), "PKCS12"),
    }
    of_brokers = {
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.logins.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.logins.plain.sasl.jaas.config": f'{_SECURITY} user_alice="alice" user_bob="bob";',
        "listener.name.tls.ssl.client.auth": "required",
    }
    listeners = {"LOGINS": "SASL_PLAINTEXT", "TLS": "SSL"}
    roles = {1: "controller", 2: "broker", 3: "broker"}
    nodes = new_nodes(folder, roles, settings=secured | of_brokers, listeners=listeners)
    nodes[1] = attrs.evolve(nodes[1], more_listeners={}, settings=secured)
    with ExitStack() as stack:
        for node in nodes.values():
            node.write_properties()
            logging = node.folder / "log4j2.properties"
            own = logging.read_text("utf-8").replace("appenders=console", "appenders=console,authorizer", 1)
            logging.write_text(own + _LOGGER.format(file=node.folder / AUTHORIZER_LOG), "utf-8")
            stack.callback(node.kill)
            node.launch()
        for node in nodes.values():
            node.await_ready()
        done(nodes[2].admin.create_acls(_rights()))
        yield Authorized(nodes=nodes, clients=_clients(nodes, folder))


def _rights() -> list[ck.AclBinding]:
    """Alice and Carol may change everything, Bob the topics whose names begin with `bob-`, and configs."""
    topic, broker, every, prefixed = (
        ck.ResourceType.TOPIC, ck.ResourceType.BROKER, ck.ResourcePatternType.LITERAL, ck.ResourcePatternType.PREFIXED,
    )  # fmt: skip
    operation = ck.AclOperation
    given = [
        (ALICE, topic, "*", every, operation.ALL),
        (ALICE, broker, CLUSTER, every, operation.ALL),
        (BOB, topic, "bob-", prefixed, operation.ALL),
        (BOB, topic, "*", every, operation.ALTER_CONFIGS),
        (BOB, broker, CLUSTER, every, operation.ALTER),
        (CAROL, topic, "*", every, operation.ALL),
        (CAROL, broker, CLUSTER, every, operation.ALL),
    ]
    return [
        ck.AclBinding(type_, name, pattern, principal, "*", allowed, ck.AclPermissionType.ALLOW)
        for principal, type_, name, pattern, allowed in given
    ]


def _clients(nodes: Mapping[int, KafkaNode], folder: Path) -> dict[str, AdminClient]:
    def login(node: int, user: str) -> AdminClient:
        return AdminClient({
            "bootstrap.servers": nodes[node].listener("LOGINS"), "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": user, "log_level": 2,
        })  # fmt: skip

    tls = AdminClient({
        "bootstrap.servers": nodes[2].listener("TLS"), "security.protocol": "SSL", "log_level": 2,
        "ssl.ca.location": str(folder / "ca.pem"), "ssl.certificate.location": str(folder / "carol.pem"),
        "ssl.key.location": str(folder / "carol.key"),
    })  # fmt: skip
    return {ALICE: login(2, "alice"), BOB: login(3, "bob"), CAROL: tls}


@attrs.frozen(kw_only=True)
class Made:
    """A change that a principal made, what identifies its record, and its request."""

    identity: tuple[str, ...]
    principal: str
    request: str


def identity_of(message: Any, topics: Mapping[Any, str]) -> tuple[str, ...] | None:
    """What identifies a record among those of `change`; None for other records."""
    match message:
        case r.TopicRecord():
            return "topic", message.name
        case r.RemoveTopicRecord():
            return "deleted", topics[message.topic_id]
        case r.PartitionRecord():
            return "partition", topics[message.topic_id], str(message.partition_id)
        case r.ConfigRecord() if message.value is not None:
            return "config", message.resource_name, message.value
        case r.AccessControlEntryRecord():
            return "acl", message.principal
        case r.UserScramCredentialRecord():
            return "scram", message.name
    return None


def change(cluster: Authorized, number: int, principal: str) -> tuple[Callable[[], None], Made]:
    """The change of a number by a principal: a function that makes it, and what it makes."""
    client = cluster.clients[principal]
    name = f"{'bob-' if principal == BOB else ''}t-{number}"
    kind = number % 6
    made: tuple[str, ...]
    if kind == 0:
        made, request = ("topic", name), "CreateTopics"
        make = lambda: done(client.create_topics([ck.NewTopic(name, 1, 1)]))  # noqa: E731
    elif kind == 1:
        made, request = ("config", "shared", str(100_000 + number)), "IncrementalAlterConfigs"
        make = lambda: set_configs(client, ck.ResourceType.TOPIC, "shared", retention_ms=made[2])  # noqa: E731
    elif kind == 2:
        made, request = ("acl", f"User:u-{number}"), "CreateAcls"
        binding = ck.AclBinding(
            ck.ResourceType.TOPIC, "shared", ck.ResourcePatternType.LITERAL, made[1], "*", ck.AclOperation.READ,
            ck.AclPermissionType.ALLOW,
        )  # fmt: skip
        make = lambda: done(client.create_acls([binding]))  # noqa: E731
    elif kind == 3:
        made, request = ("scram", f"u-{number}"), "AlterUserScramCredentials"
        credential = ck.ScramCredentialInfo(ck.ScramMechanism.SCRAM_SHA_256, 4096)
        upsertion = ck.UserScramCredentialUpsertion(made[1], credential, b"secret")
        make = lambda: done(client.alter_user_scram_credentials([upsertion]))  # noqa: E731
    elif kind == 4:
        name = f"{'bob-' if principal == BOB else ''}grown-{number}"
        made, request = ("partition", name, "1"), "CreatePartitions"
        make = lambda: done(client.create_partitions([ck.NewPartitions(name, 2)]))  # noqa: E731
    else:
        name = f"{'bob-' if principal == BOB else ''}gone-{number}"
        made, request = ("deleted", name), "DeleteTopics"
        make = lambda: done(client.delete_topics([name]))  # noqa: E731
    return make, Made(identity=made, principal=principal, request=request)


def prepare(cluster: Authorized, numbers: Sequence[int], principals: Sequence[str]) -> None:
    """Create the topics that the changes of these numbers need, as the nodes' own principal."""
    wanted = ["shared"]
    for number, principal in zip(numbers, principals, strict=True):
        begin = "bob-" if principal == BOB else ""
        wanted += [f"{begin}{name}-{number}" for kind, name in ((4, "grown"), (5, "gone")) if number % 6 == kind]
    there = cluster.nodes[2].admin.list_topics(timeout=120).topics
    done(cluster.nodes[2].admin.create_topics([ck.NewTopic(name, 1, 1) for name in wanted if name not in there]))


def records_of(source: Any) -> dict[tuple[str, ...], int]:
    """The offset of each record that a change made, by what identifies it."""
    topics: dict[Any, str] = {}
    found: dict[tuple[str, ...], int] = {}
    for record in source.records():
        if isinstance(record.message, r.TopicRecord):
            topics[record.message.topic_id] = record.message.name
        identity = identity_of(record.message, topics)
        if identity is not None and cause_of(record.message, topics).ways:
            found[identity] = record.offset
    return found


def record(folder: Path) -> None:
    """Write the metadata log and the authorizer logs of a cluster after a few changes, a second apart, and at once."""
    with tempfile.TemporaryDirectory() as scratch, authorized_nodes(Path(scratch) / "nodes") as cluster:
        numbers = range(18)
        principals = [PRINCIPALS[number // 2 % 3] for number in numbers]
        prepare(cluster, numbers, principals)
        for number, principal in zip(numbers, principals, strict=True):
            time.sleep(1)
            make, _ = change(cluster, number, principal)
            make()
        log = folder / "log" / "__cluster_metadata-0"
        shutil.rmtree(folder, ignore_errors=True)
        log.mkdir(parents=True)
        for node in cluster.nodes.values():
            node.stop()
        for segment in sorted(cluster.metadata.glob("*.log")):
            shutil.copy(segment, log)
        shutil.copy(cluster.metadata.parent / "meta.properties", log.parent)
        for number, node in cluster.nodes.items():
            target = folder / f"node-{number}" / f"{AUTHORIZER_LOG}.gz"
            target.parent.mkdir()
            target.write_bytes(gzip.compress((node.folder / AUTHORIZER_LOG).read_bytes(), mtime=0))


if __name__ == "__main__":
    record(Path(sys.argv[1]))
