"""`kraftlake undo --apply` on a real cluster of three nodes: throttled moves, nodes that are gone, two at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import admin as ck
from confluent_kafka.admin import AdminClient, NewTopic

import kraftlake
from kraftlake.api import Source
from kraftlake.protocol.address import parse_addresses
from kraftlake.protocol.node_error import NodeError
from kraftlake.protocol.quorum_client import QuorumClient
from tests.interop.kafka_admin import KafkaAdmin, kafka_admin
from tests.interop.undone_nodes import (
    AUTHORIZED,
    acl,
    await_lines,
    delete_all_acls,
    done,
    ended,
    set_configs,
    started,
)
from tests.kafka_node import KafkaNode, started_nodes
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(os.environ.get("KRAFTLAKE_TESTS") != "long", reason="make test-long: three nodes"),
]

RATES = ("follower.replication.throttled.rate", "leader.replication.throttled.rate")
REPLICAS = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")
Nodes = dict[int, KafkaNode]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    roles = dict.fromkeys((1, 2, 3), "broker,controller")
    with started_nodes(tmp_path_factory.mktemp("nodes"), roles, settings=AUTHORIZED) as running:
        yield running


@pytest.fixture(scope="module")
def admin(nodes: Nodes) -> Iterator[KafkaAdmin]:
    with kafka_admin(brokers_of(nodes)) as client:
        yield client


def brokers_of(nodes: Nodes) -> str:
    return ",".join(one.bootstrap for one in nodes.values())


def quorum_of(nodes: Nodes) -> str:
    return ",".join(one.controller for one in nodes.values())


def opened(nodes: Nodes) -> Source:
    return kraftlake.open(quorum_of(nodes))


def create(client: AdminClient, name: str, *replicas: list[int]) -> None:
    wait_for(lambda: name not in client.list_topics(timeout=120).topics)
    done(client.create_topics([NewTopic(name, len(replicas), replica_assignment=list(replicas))]))
    wait_for(lambda: name in client.list_topics(timeout=120).topics)


def fill(bootstrap: str, topic: str, size: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for _ in range(size // 10_000):
        producer.produce(topic, os.urandom(10_000), partition=0)
    assert producer.flush(60) == 0


def throttles(client: AdminClient, topic: str) -> dict[tuple[str, str], str]:
    """The throttles that brokers and a topic have, by a client of Kafka's."""
    found: dict[tuple[str, str], str] = {}
    for kind, name in [(ck.ResourceType.TOPIC, topic), *((ck.ResourceType.BROKER, str(id_)) for id_ in (1, 2, 3))]:
        (future,) = client.describe_configs([ck.ConfigResource(kind, name)]).values()
        of = {key: entry.value for key, entry in future.result(timeout=120).items() if key in RATES + REPLICAS}
        found |= {(name, key): value for key, value in of.items() if value}
    return found


def leader_of(node: KafkaNode) -> int:
    """The controller that leads, by the answer of a node; -1 while none does."""
    with suppress(NodeError), QuorumClient(parse_addresses(node.controller)) as client:
        return client.describe().leader_id
    return -1


def replicas_of(client: AdminClient, topic: str) -> tuple[list[int], list[int]]:
    partition = client.list_topics(topic, timeout=120).topics[topic].partitions[0]
    return partition.replicas, sorted(partition.isrs)


def moved(nodes: Nodes, admin: KafkaAdmin, topic: str, size: int, *, replicas: list[int], to: list[int]) -> int:
    """Make a topic with records, and move it; returns the offset before the move."""
    create(nodes[1].admin, topic, replicas)
    fill(brokers_of(nodes), topic, size)
    then = opened(nodes).end_offset - 1
    admin.move(topic, 0, *to)
    wait_for(lambda: admin.moving() == 0)
    return then


def test_a_move_has_a_throttle_which_goes_at_the_end_also_after_a_kill(
    nodes: Nodes, admin: KafkaAdmin, tmp_path: Path
) -> None:
    client = nodes[1].admin
    then = moved(nodes, admin, "moved", 3_000_000, replicas=[1, 2], to=[3, 2])
    before = throttles(client, "moved")
    journal = tmp_path / "journal"
    undo = (
        "undo", quorum_of(nodes), "--to", then, "--kind", "topic", "--assignments", "--throttle", 200_000, "--apply",
        "--yes", "--journal", journal,
    )  # fmt: skip
    with started(*undo) as killed:
        await_lines(journal, '"reassign"', 2)
        wait_for(admin.moving)
        killed.kill()
    assert killed.returncode == -9
    added = {key: value for key, value in throttles(client, "moved").items() if before.get(key) != value}
    assert added == {
        **{(str(id_), rate): "200000" for id_ in (1, 2, 3) for rate in RATES},
        ("moved", REPLICAS[0]): "0:1", ("moved", REPLICAS[1]): "0:3,0:2",
    }  # fmt: skip
    assert admin.moving() == 1
    printed = ended(*undo, "--on", brokers_of(nodes), code=0)
    assert "equal: the cluster, read back whole, is what it was" in printed
    assert admin.moving() == 0
    assert replicas_of(client, "moved") == ([1, 2], [1, 2])
    assert throttles(client, "moved") == before
    assert opened(nodes).drift(opened(nodes), then, also=["placement"]).is_empty()


def test_a_broker_that_a_partition_moves_to_and_that_is_gone_is_named(
    nodes: Nodes, admin: KafkaAdmin, tmp_path: Path
) -> None:
    client = nodes[1].admin
    then = moved(nodes, admin, "waits", 2_000_000, replicas=[3, 1], to=[2, 1])
    undo = (
        "undo", quorum_of(nodes), "--to", then, "--topic", "waits", "--assignments", "--throttle", 100_000, "--apply",
        "--yes", "--journal", tmp_path / "journal",
    )  # fmt: skip
    with started(*undo) as process:
        wait_for(admin.moving)
        nodes[3].kill()
        printed, _ = process.communicate(timeout=180)
    assert process.returncode == 1, printed
    assert "1 partition moves" in printed
    assert "waits-0 moves to broker 3, which does not run; the throttle stays until then" in printed
    nodes[3].start()
    assert "equal: the cluster" in ended(*undo, code=0)
    assert replicas_of(client, "waits") == ([3, 1], [1, 3])
    assert not throttles(client, "waits")


def test_a_broker_that_is_gone_in_the_middle_ends_the_command_which_goes_on_later(nodes: Nodes, tmp_path: Path) -> None:
    client, journal = nodes[1].admin, tmp_path / "journal"
    done(client.create_acls([acl(f"User:u{number}", ck.AclOperation.READ) for number in range(12)]))
    then = opened(nodes).end_offset - 1
    delete_all_acls(client)
    words = ("--kind", "acl", "--apply", "--access", "--yes", "--journal", journal, "--rate", 2)
    undo = ("undo", quorum_of(nodes), "--to", then, *words)
    with started(*undo, "--on", nodes[2].bootstrap) as process:
        await_lines(journal, '"read back"', 3)
        nodes[2].kill()
        printed, _ = process.communicate(timeout=180)
    assert process.returncode == 1, printed
    said = printed.splitlines()[-1]
    assert said.startswith("error: Step ")
    assert said.endswith(
        f": {nodes[2].bootstrap} refuses connections: is a node running, with a listener on it? Run the same command "
        "again to go on."
    )
    nodes[2].start()
    assert "equal: the cluster" in ended(*undo, "--on", nodes[2].bootstrap, code=0)
    assert opened(nodes).drift(opened(nodes), then).is_empty()


def test_the_configs_of_a_broker_that_is_gone_come_back_over_controllers_alone(nodes: Nodes, tmp_path: Path) -> None:
    client = nodes[1].admin
    set_configs(client, ck.ResourceType.BROKER, "3", log_segment_delete_delay_ms="400000")
    then = opened(nodes).end_offset - 1
    set_configs(client, ck.ResourceType.BROKER, "3", log_segment_delete_delay_ms=None)
    nodes[3].kill()
    wait_for(lambda: leader_of(nodes[1]) in (1, 2))
    undo = ("undo", quorum_of(nodes), "--to", then, "--kind", "config", "--apply", "--yes", "--journal", tmp_path / "j")
    said = ended(*undo, "--on", nodes[1].bootstrap, code=1)
    assert "Broker 3 does not run, and it alone changes its configs: give controllers with --on" in said
    assert "equal: the cluster" in ended(*undo, code=0)
    nodes[3].start()


def test_two_at_once_end_equal_or_say_that_the_other_has_the_journal(nodes: Nodes, tmp_path: Path) -> None:
    client = nodes[1].admin
    create(client, "both", [1, 2])
    done(client.create_acls([acl(f"User:b{number}", ck.AclOperation.READ) for number in range(20)]))
    set_configs(client, ck.ResourceType.TOPIC, "both", retention_ms="600000")
    then = opened(nodes).end_offset - 1
    done(client.delete_topics(["both"]))
    delete_all_acls(client)
    undo = ("undo", quorum_of(nodes), "--to", then, "--apply", "--access", "--destructive", "--yes")
    one, two, same = (tmp_path / name for name in ("one", "two", "one"))
    with started(*undo, "--journal", one, "--rate", 0.2) as first:
        await_lines(one, '"read back"', 1)
        assert "Another undo writes to" in ended(*undo, "--journal", same, code=2)
        second = ended(*undo, "--journal", two, "--on", brokers_of(nodes), code=0)
        printed, _ = first.communicate(timeout=180)
    assert first.returncode == 0, printed
    assert "already so" in printed
    assert "equal: the cluster" in second
    assert opened(nodes).drift(opened(nodes), then).is_empty()
