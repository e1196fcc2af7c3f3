"""Random histories of a real cluster of three nodes, undone to random moments; its clients read what comes out."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

import kraftlake
from kraftlake.diagnosis.undo.apply_plan import apply_plan
from kraftlake.diagnosis.undo.applying import Pace, Taken
from kraftlake.diagnosis.undo.step import Action, StepClass
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.quorum_client import QuorumClient
from tests.at_least_one import at_least_one
from tests.interop.kafka_admin import KafkaAdmin, kafka_admin
from tests.interop.kafka_classes import KafkaClassesError
from tests.interop.undone_nodes import (
    AUTHORIZED,
    FAST,
    LakeCluster,
    acl,
    cluster_on_a_lake,
    delete_all_acls,
    done,
    set_configs,
)
from tests.kafka_node import KafkaNode, started_nodes
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: three nodes, fifty times"),
]

CHANGES, MOMENTS = 200, 50
TOPICS = [f"t-{number}" for number in range(8)]
USERS = ["alice", "bob", "carol"]
"""Small pools of names, so that things are changed, deleted and made again."""


_DYNAMIC = {
    ck.ResourceType.TOPIC: ck.ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    ck.ResourceType.BROKER: ck.ConfigSource.DYNAMIC_BROKER_CONFIG.value,
}


ENTITIES: list[dict[str, str | None]] = [
    {"user": "alice"}, {"user": None}, {"client-id": "c"}, {"user": "alice", "client-id": None}, {"ip": "10.0.0.9"},
]  # fmt: skip
FEATURES = {"transaction.version": (0, 2), "group.version": (0, 1), "eligible.leader.replicas.version": (0, 1)}
"""The lowest and the highest level that a cluster takes."""
EXPECTED = {*Action} - {Action.ADD_PARTITIONS}
"""The actions of which fifty plans have at least one."""
OTHER_CONFIGS = [
    ("GROUP", "g-1", "consumer.session.timeout.ms", ["45000", "50000", None]),
    ("GROUP", "g-2", "share.record.lock.duration.ms", ["20000", None]),
    ("CLIENT_METRICS", "m", "interval.ms", ["1000", "2000", None]),
]


class History:
    """Makes random changes by clients of Kafka's, and reads the cluster by them."""

    def __init__(self, client: AdminClient, admin: KafkaAdmin, seed: int) -> None:
        self._client = client
        self._admin = admin
        self._random = random.Random(seed)
        self._brokers = [1, 2, 3]

    def change(self) -> None:
        """Make one change that the cluster takes."""
        kinds: list[Callable[[], None]] = [
            self._create, self._create, self._delete, self._grow, self._configure, self._configure, self._allow,
            self._allow, self._revoke, self._configure_broker, self._set_scram, self._set_quota, self._set_feature,
            self._configure_other, self._move,
        ]  # fmt: skip
        with suppress(KafkaException, KafkaClassesError):  # the broker that is asked may not know yet what was deleted
            self._random.choice(kinds)()

    def _topics(self) -> dict[str, Any]:
        topics = self._client.list_topics(timeout=120).topics
        return {name: topic for name, topic in topics.items() if not name.startswith("__")}

    def _create(self) -> None:
        missing = [name for name in TOPICS if name not in self._topics()]
        if missing:
            factor = self._random.randint(1, 3)
            assignment = [self._random.sample(self._brokers, factor) for _ in range(self._random.randint(1, 4))]
            configs = {"retention.ms": "600000"} if self._random.random() < 0.5 else {}
            topic = NewTopic(
                self._random.choice(missing), len(assignment), replica_assignment=assignment, config=configs
            )
            done(self._client.create_topics([topic]))

    def _delete(self) -> None:
        topics = self._topics()
        if len(topics) > 2:
            done(self._client.delete_topics([self._random.choice(sorted(topics))]))

    def _grow(self) -> None:
        topics = self._topics()
        if topics:
            name = self._random.choice(sorted(topics))
            count = len(topics[name].partitions) + 1
            if count < 8:
                done(self._client.create_partitions([NewPartitions(name, count)]))

    def _move(self) -> None:
        topics = self._topics()
        if topics:
            name = self._random.choice(sorted(topics))
            number = self._random.choice(sorted(topics[name].partitions))
            count = len(topics[name].partitions[number].replicas)
            self._admin.move(name, number, *self._random.sample(self._brokers, count))
            wait_for(lambda: self._admin.moving() == 0)

    def _configure(self) -> None:
        topics = self._topics()
        if topics:
            value = self._random.choice(["compact", "delete", "compact,delete", None])
            name = self._random.choice(sorted(topics))
            set_configs(self._client, ck.ResourceType.TOPIC, name, cleanup_policy=value)

    def _configure_broker(self) -> None:
        value = self._random.choice(["400000", "500000", None])
        broker = str(self._random.choice(self._brokers))
        set_configs(self._client, ck.ResourceType.BROKER, broker, log_segment_delete_delay_ms=value)

    def _acl(self) -> ck.AclBinding:
        operation = self._random.choice([ck.AclOperation.READ, ck.AclOperation.WRITE])
        return acl(f"User:{self._random.choice(USERS)}", operation, deny=self._random.random() < 0.3)

    def _allow(self) -> None:
        done(self._client.create_acls([self._acl()]))

    def _revoke(self) -> None:
        one = self._acl()
        wanted = ck.AclBindingFilter(
            one.restype, one.name, one.resource_pattern_type, one.principal, one.host, one.operation,
            one.permission_type,
        )  # fmt: skip
        done(self._client.delete_acls([wanted]))

    def _set_scram(self) -> None:
        mechanism = self._random.choice(["SCRAM-SHA-256", "SCRAM-SHA-512"])
        self._admin.set_scram(self._random.choice(USERS), mechanism, self._random.choice([4096, 8192, None]))

    def _set_quota(self) -> None:
        entity = self._random.choice(ENTITIES)
        key = (
            "connection_creation_rate"
            if "ip" in entity
            else self._random.choice(["producer_byte_rate", "request_percentage"])
        )
        self._admin.set_quota(entity, key, self._random.choice([10.0, 20.0, 30.0, None]))

    def _set_feature(self) -> None:
        name = self._random.choice(sorted(FEATURES))
        self._admin.set_feature(name, self._random.choice(FEATURES[name]))

    def _configure_other(self) -> None:
        kind, name, key, values = self._random.choice(OTHER_CONFIGS)
        self._admin.set_config(kind, name, key, self._random.choice(values))

    def reading(self) -> set[tuple[Any, ...]]:
        """All that the clients read: topics with their replicas, dynamic configs, ACLs, quotas, users, features."""
        topics = self._topics()
        rows: set[tuple[Any, ...]] = {*self._admin.read()}
        for name, topic in topics.items():
            replicas = tuple(tuple(topic.partitions[number].replicas) for number in sorted(topic.partitions))
            rows.add(("topic", name, replicas))
        asked = [[ck.ConfigResource(ck.ResourceType.TOPIC, name) for name in topics]]
        asked += [[ck.ConfigResource(ck.ResourceType.BROKER, str(broker))] for broker in self._brokers]
        futures = [one for resources in asked if resources for one in self._client.describe_configs(resources).items()]
        for resource, future in futures:
            for entry in future.result(timeout=120).values():
                if entry.source == _DYNAMIC[resource.restype]:
                    rows.add(("config", resource.restype.name, resource.name, entry.name, entry.value))
        any_ = ck.AclBindingFilter(
            ck.ResourceType.ANY, None, ck.ResourcePatternType.ANY, None, None, ck.AclOperation.ANY,
            ck.AclPermissionType.ANY,
        )  # fmt: skip
        for rule in self._client.describe_acls(any_).result(timeout=120):
            rows.add(("acl", rule.principal, rule.operation.name, rule.permission_type.name, rule.name))
        return rows

    def reads(self, wanted: set[tuple[Any, ...]], partial: set[str]) -> bool:
        """Whether the clients read this, but for topics that are partial; reassignments take their time."""
        with suppress(KafkaException, KafkaClassesError):
            return without_partial(self.reading(), partial) == wanted
        return False


def await_reading(history: History, wanted: set[tuple[Any, ...]], partial: set[str], what: str) -> None:
    wait_for(lambda: history.reads(wanted, partial), what)


def settled(history: History) -> set[tuple[Any, ...]]:
    """A reading that two requests agree on: brokers learn of a change one after another."""
    before: set[tuple[Any, ...]] | None = None
    while True:
        now = None
        with suppress(KafkaException, KafkaClassesError):
            now = history.reading()
        if now is not None and now == before:
            return now
        before = now
        time.sleep(0.3)


def without_partial(rows: set[tuple[Any, ...]], partial: set[str]) -> set[tuple[Any, ...]]:
    return {one for one in rows if f"{one[0]}/{one[1]}" not in partial}


@contextmanager
def three_nodes(folder: Path) -> Iterator[tuple[KafkaNode, str]]:
    """A node of a cluster of Kafka's, and the addresses of its controllers."""
    roles = dict.fromkeys((1, 2, 3), "broker,controller")
    with started_nodes(folder, roles, settings=AUTHORIZED) as nodes:
        yield nodes[1], ",".join(one.controller for one in nodes.values())


@contextmanager
def three_brokers_on_a_lake(folder: Path) -> Iterator[tuple[LakeCluster, str]]:
    """A cluster of `cluster up`, and the addresses of its controllers."""
    with cluster_on_a_lake(folder) as cluster:
        yield cluster, cluster.controller


@pytest.mark.parametrize("started", [three_nodes, three_brokers_on_a_lake])
def test_a_random_history_is_undone_to_random_moments(tmp_path: Path, started: Callable[[Path], Any]) -> None:
    seed = random.SystemRandom().randrange(2**32)
    with started(tmp_path) as (node, quorum), kafka_admin(node.bootstrap) as admin:
        history, moments, taken = History(node.admin, admin, seed), [], set()
        for at in range(CHANGES):
            history.change()
            if at % max(1, CHANGES // (2 * MOMENTS)) == 0:
                reading = settled(history)
                moments.append((kraftlake.open(quorum).end_offset - 1, reading))
        random.Random(seed).shuffle(moments)
        for number, (then, reading) in at_least_one(enumerate(moments[:MOMENTS])):
            source = kraftlake.open(quorum)
            plan = source.plan_undo(then, assignments=True)
            on = node.bootstrap if number % 2 else quorum
            found = apply_plan(plan, source, on, journal=tmp_path / "journal", pace=FAST, classes=[*StepClass])
            excused = {step.path for step in plan.steps if step.action is Action.NONE}
            unexcused = [one.change.describe() for one in found.left.changes if one.path not in excused]
            assert unexcused == [], f"seed {seed}, moment {number}"
            wanted = without_partial(reading, excused)
            await_reading(history, wanted, excused, f"seed {seed}, moment {number}")
            taken.update((step.action, step.subject.get("type")) for step in plan.steps)
        assert {action for action, _ in taken} >= EXPECTED, f"seed {seed}"
        assert {kind for _, kind in taken} >= {"TOPIC", "BROKER", "GROUP", "CLIENT_METRICS"}, f"seed {seed}"


@pytest.mark.parametrize("over", ["bootstrap", "controller"])
def test_a_leader_that_is_killed_in_the_middle_is_followed_by_another(tmp_path: Path, over: str) -> None:
    roles = dict.fromkeys((1, 2, 3), "broker,controller")
    with started_nodes(tmp_path, roles, settings=AUTHORIZED) as nodes:
        addresses = ",".join(getattr(one, over) for one in nodes.values())
        quorum = ",".join(one.controller for one in nodes.values())
        client = nodes[1].admin
        done(client.create_topics([NewTopic("orders", 1, 3)]))
        users = [f"User:u{number}" for number in range(20)]
        done(client.create_acls([acl(user, ck.AclOperation.READ) for user in users]))
        then = kraftlake.open(quorum).end_offset - 1
        delete_all_acls(client)
        source = kraftlake.open(quorum)
        plan = source.plan_undo(then)
        leader = next(id_ for id_, node in nodes.items() if id_ == leader_of(node))

        def kill_the_leader(taken: Taken) -> None:
            if taken.number == 7:
                nodes[leader].kill()

        found = apply_plan(
            plan, source, addresses, journal=tmp_path / "journal", pace=Pace(rate=1000, patience=120),
            classes=[*StepClass], on_step=kill_the_leader,
        )  # fmt: skip
        assert {one.outcome for one in found.steps} == {"applied"}
        assert found.left.is_empty()


def leader_of(node: KafkaNode) -> int:
    """The controller that leads, by the answer of a node."""
    with QuorumClient(parse_addresses(node.controller)) as client:
        return client.describe().leader_id
