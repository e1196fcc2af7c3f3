"""Random requests for topics, ACLs, quotas, SCRAM users, features, tokens: a real Kafka 4.4 controller and ours agree.

The requests have several parts, names twice, bounds and values at their edges, and forms that only Java takes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from hypothesis import settings as settings_

from kraftlake.controller.access.acls import AclFilter
from kraftlake.controller.access.client_quotas import QuotaAlteration
from kraftlake.controller.access.scram import ScramDeletion, ScramUpsertion
from kraftlake.controller.cluster.features import UpgradeType
from kraftlake.controller.replication.topics import CreatableTopic, NewPartitions
from kraftlake.image.acls_image import StandardAcl
from tests.controller.both_controllers import BothControllers
from tests.controller.both_tokens import SASL_PROPERTIES, BothWithTokens
from tests.controller.both_tokens import USERS as USERS_OF_TOKENS
from tests.controller.test_kafka_node_agrees import BROKERS, HOUR, PROPERTIES
from tests.kafka_node import started_nodes

pytestmark = pytest.mark.spark

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
STEPS = max(100, settings_.default.max_examples)
TOKEN_STEPS = settings_.default.max_examples // 2
"""Each request is followed by an ACL, which is a step too."""
NAMES = ("orders", "bills", "or.ders", "or_ders", "log-1")
USERS = ("alice", "bob", "ü")
BAD_NAMES = ("__cluster_metadata", "a b", "", ".", "x" * 250)
HOSTS = (
    "*", "10.0.0.1", "10.0.0.0/8", "10.0.0.0/255.0.0.0", "010.0.0.0/8", "10.0.0.0/33", "[fe80::]/32", "fe80::/+10",
    "::ffff:10.0.0.0/104", "fe80::/129", "10.0.0/8", "", "nonsense/8",
)  # fmt: skip
ADDRESSES = ("1.2.3.4", "10.1", "[::1]", "::1", "::ffff:1.2.3.4", "fe80::1%2", None, "::1%", "1:2", "[1.2.3.4]", "")
VALUES = (None, 1.0, 1.0, 2.0, 1.5, 1.0000005, 0.0, -1.0, 2147483648.0, 2.0**63, 2.0**64, float("inf"))
QUOTAS = (
    "producer_byte_rate", "consumer_byte_rate", "connection_creation_rate", "nonsense", "request_percentage",
    "controller_mutation_rate",
)  # fmt: skip
OF_THE_TEST = 2
"""How many of QUOTAS would slow these requests down themselves, where they are the default's."""


def some(draws: random.Random, most: int = 3) -> range:
    return range(draws.randint(1, most))


def create(both: BothControllers, draws: random.Random) -> None:
    """By assignments: two controllers place replicas at random. Counts are those that are refused."""
    topics = []
    for _ in some(draws):
        name = draws.choice(BAD_NAMES) if draws.random() < 0.15 else draws.choice(NAMES)
        replicas = [draws.sample(BROKERS, draws.randint(1, 3)) for _ in some(draws)]
        counts = draws.choice(({},) * 8 + ({"num_partitions": 0}, {"num_partitions": 10_000, "replication_factor": 1}))
        configs = draws.choice(({}, {}, {"retention.ms": "60000"}, {"retention.ms": None}, {"retention.ms": "soon"}))
        topics.append(
            CreatableTopic(
                name=name, assignments=[] if counts else list(enumerate(replicas)), configs=configs, **counts
            )
        )
    both.create_all(topics, validate_only=draws.random() < 0.2)


def delete(both: BothControllers, draws: random.Random) -> None:
    both.delete(*(draws.choice(NAMES) for _ in some(draws)))


def grow(both: BothControllers, draws: random.Random) -> None:
    """Each topic has one number of replicas here, or Kafka asks for that of any partition."""
    topics = []
    for _ in some(draws):
        name = draws.choice(NAMES)
        topic = both.ours.image.topics.get_topic(name)
        factors = {len(partition.replicas) for partition in topic.partitions.values()} if topic else {1}
        first = len(topic.partitions) if topic else 0
        count = draws.randint(1, 5)
        assignments = [draws.sample(BROKERS, min(factors)) for _ in range(max(1, count - first))]
        if len(factors) == 1:
            topics.append(NewPartitions(name=name, count=count, assignments=assignments))
    if topics:
        both.grow_all(topics, validate_only=draws.random() < 0.2)


def an_acl(draws: random.Random) -> StandardAcl:
    return StandardAcl(
        resource_type=draws.randint(2, 7),
        resource_name=draws.choice(("orders", "ord", "*", "kafka-cluster", "cluster", "")),
        pattern_type=draws.choice((3, 4)),
        principal=draws.choice(("User:alice", "User:*", "Group:all", "alice", ":", "User:a:b")),
        host=draws.choice(HOSTS),
        operation=draws.randint(2, 15),
        permission_type=draws.choice((2, 3)),
    )


def add_acls(both: BothControllers, draws: random.Random) -> None:
    acls = [an_acl(draws) for _ in some(draws, 6)]
    both.add_acl(*acls, draws.choice(acls))


def remove_acls(both: BothControllers, draws: random.Random) -> None:
    # Kafka's ids of the ACLs, which are the keys, are random: a seed has to give the same requests again.
    known = sorted(both.ours.image.acls.acls.values(), key=attrs.astuple) or [an_acl(draws)]
    one = draws.choice(known)
    both.remove_acls(
        AclFilter(
            resource_type=draws.choice((1, one.resource_type)),
            resource_name=draws.choice((None, one.resource_name, "orders")),
            pattern_type=draws.choice((1, 2, one.pattern_type)),
            principal=draws.choice((None, one.principal)),
            host=draws.choice((one.host, one.host, None)),
            operation=draws.choice((1, one.operation)),
            permission_type=draws.choice((1, one.permission_type)),
        )
    )


def quotas(both: BothControllers, draws: random.Random) -> None:
    alterations = []
    for _ in some(draws):
        if draws.random() < 0.3:
            entity: dict[str, str | None] = {"ip": draws.choice(ADDRESSES)}
        else:
            kinds = draws.sample(("user", "client-id", "user", "client-id", "group", "ip"), draws.randint(1, 2))
            entity = {kind: draws.choice((*USERS, None, "")) if kind != "ip" else "10.0.0.1" for kind in kinds}
        keys = QUOTAS[:-OF_THE_TEST] if None in entity.values() else QUOTAS
        ops = [(draws.choice(keys), draws.choice(VALUES)) for _ in some(draws, 2)]
        alterations.append(QuotaAlteration(entity=tuple(sorted(entity.items())), ops=ops))
    both.quotas(alterations, validate_only=draws.random() < 0.2)


def scram(both: BothControllers, draws: random.Random) -> None:
    changes: list[ScramUpsertion | ScramDeletion] = []
    for _ in some(draws):
        name, mechanism = draws.choice((*USERS, "")), draws.choice((1, 1, 2, 2, 0, 3))
        if draws.random() < 0.4:
            changes.append(ScramDeletion(name=name, mechanism=mechanism))
        elif draws.random() < 0.5:
            changes.append(
                ScramUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"s")
            )
        else:
            iterations = draws.choice((4096, 4096, 16384, 4095, 16385))
            salted = draws.choice((b"salted", b"salted", b""))
            changes.append(
                ScramUpsertion(
                    name=name, mechanism=mechanism, iterations=iterations, salt=draws.choice((b"salt", b"")),
                    salted_password=salted,
                )
            )  # fmt: skip
    both.scram(*changes)


def features(both: BothControllers, draws: random.Random) -> None:
    names = ("group_version", "share_version", "streams_version", "transaction_version", "metadata_version", "nonsense")
    wanted = {}
    for name in draws.sample(names, draws.randint(1, 2)):
        wanted[name] = draws.choice((31, 32, 33, 34)) if name == "metadata_version" else draws.randint(-1, 3)
    both.feature(draws.choice(tuple(UpgradeType)), **wanted)


def controllers(both: BothControllers, draws: random.Random) -> None:
    if draws.random() < 0.6:
        both.register_controller(draws.choice((77, 78)), process=draws.randint(0, 1))
    else:
        both.unregister_controller(draws.choice((0, 77, 78, 79)))  # 0 is the active one


def producer_ids(both: BothControllers, draws: random.Random) -> None:
    both.allocate(draws.choice((*BROKERS, 99)), stale=draws.random() < 0.3)


REQUESTS: tuple[Callable[[BothControllers, random.Random], None], ...] = (
    create, create, create, delete, grow, add_acls, add_acls, remove_acls, quotas, quotas, scram, scram, features,
    controllers, producer_ids,
)  # fmt: skip


def one_of_each_kind(both: BothControllers) -> None:
    """Requests that succeed: whatever is drawn after them, each kind has been written down."""
    both.create_all([CreatableTopic(name="first", assignments=[(0, [BROKERS[0]])])])
    both.add_acl(
        StandardAcl(
            resource_type=2, resource_name="first", pattern_type=3, principal="User:alice", host="*", operation=3,
            permission_type=3,
        )
    )  # fmt: skip
    both.quota({"user": "alice"}, producer_byte_rate=1.0)
    both.scram(ScramUpsertion(name="bob", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"salted"))


def token_request(both: BothWithTokens, draws: random.Random) -> None:
    """Spans are hours: what passes between the two controllers' clocks is not seen in whole minutes.

    Only the super user asks for tokens of others: kio can't read the answer that refuses it.
    """
    user, token = draws.choice(USERS_OF_TOKENS), draws.choice((None, *range(len(both.hmacs))))
    kind = draws.choice("cccrrree")
    if kind == "c":
        both.create_token(
            user,
            owner=draws.choice((None, *USERS_OF_TOKENS)) if user == "admin" else None,
            renewers=tuple(draws.sample(("User:alice", "User:bob", "User:admin", "Group:all"), draws.randint(0, 2))),
            lifetime_ms=draws.choice((-1, -1, HOUR, 2 * HOUR, 1000 * 24 * HOUR)),
        )
    elif kind == "r":
        both.renew(user, token, draws.choice((-1, HOUR, 3 * HOUR, 24 * HOUR)))
    else:
        both.expire(user, token, draws.choice((-1, 0, HOUR, 3 * HOUR)))


@pytest.mark.skipif(not LONG, reason="make test-long: test_kafka_node_agrees.py asks for tokens as well")
def test_random_requests_for_delegation_tokens_are_answered_and_written_down_alike(tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED") or 0)
    draws = random.Random(seed)
    with started_nodes(tmp_path, {1: "controller"}, settings=PROPERTIES | SASL_PROPERTIES) as nodes:
        both = BothWithTokens(nodes[1])
        while len(both.steps) < TOKEN_STEPS and not both.differences:
            token_request(both, draws)
        both.close()
    assert both.differences == [], f"seed {seed}"
    assert len(both.hmacs) > TOKEN_STEPS // 20, "some were created"


def test_random_requests_are_answered_and_written_down_alike(tmp_path: Path) -> None:
    seed = int(os.environ.get("KRAFTLAKE_SEED") or 0)
    draws = random.Random(seed)
    with started_nodes(tmp_path, {1: "controller"}, settings=PROPERTIES) as nodes:
        both = BothControllers(nodes[1])
        for broker in BROKERS:
            both.register(broker)
            both.heartbeat(broker)
        one_of_each_kind(both)
        while len(both.steps) < STEPS and not both.differences:
            draws.choice(REQUESTS)(both, draws)
        both.rpc.close()
    assert both.differences == [], f"seed {seed}"
    written = {
        type(record.message).__name__ for batch in both.ours.log if not batch.control for record in batch.messages()
    }
    assert written >= {"TopicRecord", "AccessControlEntryRecord", "ClientQuotaRecord", "UserScramCredentialRecord"}
