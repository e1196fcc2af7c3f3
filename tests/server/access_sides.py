"""A node of Kafka's and a cluster of a lake with the same listeners, users and ACLs, and who is let do what there."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
from confluent_kafka import admin as ck

from kraftlake.protocol.address import Address, parse_addresses
from kraftlake.protocol.client_config import parse_client_config
from kraftlake.protocol.node_client import NodeClient
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError
from kraftlake.server.broker.broker_config import BrokerConfig
from kraftlake.server.broker.broker_server import BrokerServer
from kraftlake.server.controller.envelope_handler import errors_in
from kraftlake.server.node_config import STANDARD_AUTHORIZER, ListenerAddress
from simulator.data_batches import batch
from tests.certificates import Identity, authority, issued
from tests.kafka_node import started_node
from tests.server.broker.lake_cluster import QUICK, LakeCluster, Member
from tests.server.matrix.wire import made
from tests.waiting import PATIENCE, wait_for

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENERS = {"TLS": "SSL", "LOGINS": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}
_MODULES = "org.apache.kafka.common.security"
_PLAIN = f'{_MODULES}.plain.PlainLoginModule required user_alice="a-secret" user_bob="b-secret";'
_SCRAM = f"{_MODULES}.scram.ScramLoginModule required;"
PASSWORDS = {"alice": "a-secret", "bob": "b-secret", "eve": "e-secret"}
"""Eve is known to no listener."""
_ANY = "User:*"
ACLS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "none": (),
    "read": (("User:alice", "ALLOW", "READ"),),
    "pre-fixed": (),
    "denied": ((_ANY, "ALLOW", "ALL"), ("User:alice", "DENY", "ALL")),
    "elsewhere": (("User:alice", "ALLOW", "ALL"),),
    "everyone": ((_ANY, "ALLOW", "READ"),),
    "configs": (("User:alice", "ALLOW", "ALTER_CONFIGS"), ("User:bob", "ALLOW", "DESCRIBE_CONFIGS")),
    "owned": (("User:bob", "ALLOW", "ALL"), ("User:alice", "DENY", "WRITE"), ("User:alice", "ALLOW", "ALTER")),
}
"""The ACLs of topics: principal, permission and operation; those of `pre-fixed` are for its prefix."""
_OF_THE_CLUSTER = (
    ("User:alice", "ALLOW", "DESCRIBE"), ("User:bob", "ALLOW", "CREATE"), ("User:bob", "ALLOW", "IDEMPOTENT_WRITE"),
)  # fmt: skip
_IN_OWN_WORDS = tuple(
    map(re.compile, (r"(refuses user .*?): .*", r"(does not take \S+), but .*", r"(does not accept .*) \(alert .*"))
)
"""Error messages, the order in which mechanisms are offered, and the kind of TLS' alert are no part of an outcome."""
_TOPIC, _CONFIG_SET = 2, 0
CA = authority()


@attrs.frozen
class Login:
    """A client: how it connects to which listener, as whom."""

    listener: str
    properties: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    who: str = "nobody"

    @property
    def name(self) -> str:
        """For messages: the listener, and who comes how."""
        return f"{self.who} at {self.listener}"


@attrs.frozen(kw_only=True)
class Side:
    """One of the two: its listeners' addresses, and an administrator."""

    name: str
    addresses: Mapping[str, Address]
    admin: ck.AdminClient

    def outcomes(self, login: Login) -> dict[str, str]:
        """What each operation comes to for a client, by its name; one entry where the client is not let in."""
        try:
            config = parse_client_config(login.properties, "client")
            with NodeConnector(config=config, timeout=PATIENCE)(self.addresses[login.listener]) as node:
                node.versions_of(3)
                return {name: self._outcome(node, *asked) for name, asked in operations().items()}
        except NodeError as fault:
            return {"connect": self._message(fault)}

    def _outcome(self, node: NodeClient, api: str, versions: range, values: Mapping[str, Any]) -> str:
        def request(module: Any) -> Any:
            return made(getattr(module, "".join(word.capitalize() for word in api.split("_")) + "Request"), values)

        try:
            answer = node.ask(api, versions, request)
        except NodeError as fault:
            raise NodeError(f"{api}: {fault}") from None
        more = [
            f"{field}={value}"
            for one in (answer, *getattr(answer, "topics", ()))
            for field in ("cluster_authorized_operations", "topic_authorized_operations")
            if (value := getattr(one, field, None)) is not None
        ]
        return " ".join([*(f"{int(code)}" for code in sorted({*errors_in(answer)})), *more])

    def _message(self, fault: NodeError) -> str:
        text = str(fault)
        for address in self.addresses.values():
            text = text.replace(str(address), "NODE")
        for words in _IN_OWN_WORDS:
            text = words.sub(r"\1", text)
        return f"{type(fault).__name__}: {text}"


def operations() -> dict[str, tuple[str, range, dict[str, Any]]]:
    """What is tried: the API, its versions and the fields of its request, by name; nothing is changed by it."""
    found: dict[str, tuple[str, range, dict[str, Any]]] = {
        "describe the cluster": ("describe_cluster", range(1), {"include_cluster_authorized_operations": True}),
        "describe the quorum": (
            "describe_quorum", range(1), {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{}]}]},
        ),
        "list reassignments": ("list_partition_reassignments", range(1), {"timeout": 20_000, "topics": None}),
        "describe log directories": ("describe_log_dirs", range(2, 5), {"topics": None}),
        "begin to produce": (
            "init_producer_id", range(5),
            {"transactional_id": None, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1},
        ),
        "describe ACLs": (
            "describe_acls", range(1, 4),
            {
                "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
                "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
            },
        ),
        "describe quotas": ("describe_client_quotas", range(2), {"components": (), "strict": False}),
        "describe users": ("describe_user_scram_credentials", range(1), {"users": [{"name": "alice"}]}),
    }  # fmt: skip
    for topic in ACLS:
        found |= {f"{name} {topic}": asked for name, asked in _of_topic(topic).items()}
    return found


def _of_topic(topic: str) -> dict[str, tuple[str, range, dict[str, Any]]]:
    config = {"name": "retention.ms", "config_operation": _CONFIG_SET, "value": "7000000"}
    resource = {"resource_type": _TOPIC, "resource_name": topic}
    place = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, "current_leader_epoch": -1}
    offset = {"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}
    records = batch(b"a", times=(int(time.time() * 1000),))
    return {
        "see": ("metadata", range(9, 10), {
            "topics": [{"name": topic}], "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": True,
        }),
        "look up": ("list_offsets", range(2, 8), {
            "replica_id": -1, "topics": [{"name": topic, "partitions": [offset]}],
        }),
        "read": ("fetch", range(4, 12), {
            "replica_id": -1, "max_wait": 0, "max_bytes": 1000, "session_epoch": -1,
            "topics": [{"topic": topic, "partitions": [place]}],
        }),
        "write": ("produce", range(3, 12), {
            "acks": -1, "timeout": 20_000,
            "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
        }),
        "truncate": ("delete_records", range(3), {
            "timeout": 20_000, "topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}],
        }),
        "extend": ("create_partitions", range(4), {
            "topics": [{"name": topic, "count": 2, "assignments": None}], "timeout": 20_000, "validate_only": True,
        }),
        "configure": ("incremental_alter_configs", range(2), {
            "resources": [{**resource, "configs": [config]}], "validate_only": True,
        }),
        "see configs of": ("describe_configs", range(1, 5), {
            "resources": [{**resource, "configuration_keys": ("retention.ms",)}],
        }),
        "create one like": ("create_topics", range(2, 8), {
            "topics": [{"name": f"{topic}-new", "num_partitions": 1, "replication_factor": 1}], "timeout": 20_000,
            "validate_only": True,
        }),
    }  # fmt: skip


@contextmanager
def started_sides(folder: Path, **more: str) -> Iterator[tuple[Side, Side]]:
    """Both, ours first, with the same topics, users and ACLs, and `more` settings, with _ in place of the dots."""
    folder.mkdir(parents=True, exist_ok=True)
    ca = CA
    (folder / "keystore.pem").write_text((node := issued(ca, "node")).key_pem() + node.pem)
    (folder / "truststore.pem").write_text(ca.pem)
    settings = {
        "authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "false", "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "keystore.pem"),
        "ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "truststore.pem"),
        "listener.name.tls.ssl.client.auth": "requested",
        "listener.name.logins.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.both.sasl.enabled.mechanisms": ",".join(MECHANISMS[1:]),
        "listener.name.logins.plain.sasl.jaas.config": _PLAIN,
        **{
            f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config": _SCRAM
            for listener in ("logins", "both")
            for mechanism in MECHANISMS[1:]
        },
        **{name.replace("_", "."): value for name, value in more.items()},
    }  # fmt: skip
    with ExitStack() as stack:
        node_ = stack.enter_context(started_node(folder / "theirs", settings=settings, listeners=LISTENERS))
        theirs = {name: _address(node_.listener(name)) for name in LISTENERS} | {"PLAINTEXT": _address(node_.bootstrap)}
        ours = stack.enter_context(_lake_side(folder / "ours", settings))
        sides = (
            Side(name="ours", addresses=ours, admin=_admin(ours["PLAINTEXT"])),
            Side(name="theirs", addresses=theirs, admin=node_.admin),
        )
        for side in sides:
            _prepare(side.admin)
        for side in sides:
            _await_prepared(side)
        yield sides


@contextmanager
def _lake_side(folder: Path, settings: Mapping[str, str]) -> Iterator[dict[str, Address]]:
    folder.mkdir()
    protocols = {"CONTROLLER": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", **LISTENERS}
    own = {
        **QUICK, **settings, "inter.broker.listener.name": "PLAINTEXT", "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
    }  # fmt: skip
    cluster = LakeCluster(folder)
    try:
        cluster.start_controller(101, **own)
        config = BrokerConfig(
            broker_id=1, lake=str(cluster.lake), log_dirs=(str(folder / "broker-1"),),
            listener=ListenerAddress(name="PLAINTEXT", host="127.0.0.1", port=0),
            more_listeners=tuple(ListenerAddress(name=name, host="127.0.0.1", port=0) for name in LISTENERS),
            settings=own,
        )  # fmt: skip
        cluster.members[1] = Member(lambda stop: BrokerServer(config, stop=stop))
        cluster.await_unfenced(1)
        yield {one.name: Address("127.0.0.1", one.port) for one in cluster.members[1].server.listeners}
    finally:
        cluster.stop()


def _admin(address: Address) -> ck.AdminClient:
    return ck.AdminClient({"bootstrap.servers": str(address), "log_level": 2})


def _address(text: str) -> Address:
    (found,) = parse_addresses(text)
    return found


def _prepare(admin: ck.AdminClient) -> None:
    """Make the topics, the users and the ACLs, by Kafka's requests."""

    def done(futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(PATIENCE)

    kinds, patterns = ck.ResourceType, ck.ResourcePatternType

    def acl(kind: Any, name: str, given: tuple[str, str, str], host: str = "*", *, prefixed: bool = False) -> Any:
        principal, permission, operation = given
        return ck.AclBinding(
            kind, name, patterns.PREFIXED if prefixed else patterns.LITERAL, principal, host,
            ck.AclOperation[operation], ck.AclPermissionType[permission],
        )  # fmt: skip

    done(admin.create_topics([ck.NewTopic(topic, 1, 1) for topic in ACLS]))
    for mechanism in (ck.ScramMechanism.SCRAM_SHA_256, ck.ScramMechanism.SCRAM_SHA_512):
        for user in ("alice", "bob"):
            credential = ck.ScramCredentialInfo(mechanism, 4096)
            upsertion = ck.UserScramCredentialUpsertion(user, credential, PASSWORDS[user].encode(), None)
            done(admin.alter_user_scram_credentials([upsertion]))
    acls = [
        acl(kinds.TOPIC, topic, given, "10.9.8.7" if topic == "elsewhere" else "*")
        for topic, of_topic in ACLS.items()
        for given in of_topic
    ]
    acls.append(acl(kinds.TOPIC, "pre-", ("User:bob", "ALLOW", "WRITE"), prefixed=True))
    acls += [acl(kinds.BROKER, "kafka-cluster", given) for given in _OF_THE_CLUSTER]
    done(admin.create_acls(acls))


def _await_prepared(side: Side) -> None:
    """Wait until a user of the last mechanism is let in, the last ACL holds, and there are ids for producers."""
    bob = next(login for login in logins() if login.name == "bob by SCRAM-SHA-512 at BOTH")

    def prepared() -> bool:
        found = side.outcomes(bob)
        return (found.get("create one like none"), found.get("begin to produce")) == ("0", "0")

    wait_for(prepared, f"{side.name} knows its users and ACLs")


def logins(ca: Identity = CA) -> list[Login]:
    """All clients: of each listener, with each mechanism, right and wrong."""
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": ca.pem}
    of_listener = {
        "LOGINS": {"security.protocol": "SASL_PLAINTEXT"},
        "BOTH": {"security.protocol": "SASL_SSL", **trust},
    }
    tls = {"security.protocol": "SSL", **trust}

    def shows(name: str, by: Identity) -> dict[str, str]:
        client = issued(by, name, hosts=())
        return {
            **tls, "ssl.keystore.type": "PEM", "ssl.keystore.key": client.key_pem(),
            "ssl.keystore.certificate.chain": client.pem,
        }  # fmt: skip

    found = [
        Login("PLAINTEXT"),
        Login("TLS", tls),
        Login("TLS", shows("alice", ca), "alice by certificate"),
        Login("TLS", shows("bob", ca), "bob by certificate"),
        Login("TLS", shows("alice", authority("another")), "alice by a certificate of another authority"),
        Login("LOGINS"),
    ]
    for listener, mechanism in ((one, two) for one in of_listener for two in MECHANISMS):
        for user, password in (*PASSWORDS.items(), ("alice", "wrong")):
            module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
            login = {
                **of_listener[listener], "sasl.mechanism": mechanism,
                "sasl.jaas.config": f'{_MODULES}.{module} required username="{user}" password="{password}";',
            }  # fmt: skip
            wrong = ", wrong password" if password == "wrong" else ""
            found.append(Login(listener, login, f"{user} by {mechanism}{wrong}"))
    return found
