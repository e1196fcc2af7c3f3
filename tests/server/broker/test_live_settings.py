"""Settings that a running node of a lake's cluster heeds, made for one node and for all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from kraftlake.controller.configs.alter_configs import ConfigOperation, OpType, incremental_alter_configs
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.settings.tables import BROKER
from tests.server.broker.lake_cluster import PATIENCE, SHORT_SESSION, LakeCluster, lake_cluster
from tests.server.matrix.wire import Wire, frame_of

CONTROLLER = 101


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LakeCluster]:
    """A controller and two brokers."""
    with lake_cluster(tmp_path, brokers=(1, 2), controllers=(CONTROLLER,)) as cluster:
        yield cluster


def make(cluster: LakeCluster, name: str, setting: str, value: str | None) -> None:
    """Set, or delete where there is no value, a setting of one node or of all; at the controller, which takes any."""
    operation = ConfigOperation(OpType.DELETE if value is None else OpType.SET, value)
    controller: Any = cluster.members[CONTROLLER].server.node.controller
    changes = {ConfigResource(BROKER, name): {setting: operation}}
    answers = controller.submit(lambda state: incremental_alter_configs(state, changes)).result(PATIENCE)
    assert not any(error.is_failure for error in answers.values()), answers


def fetchers(cluster: LakeCluster) -> set[int]:
    """The ids of the fetchers of broker 2."""
    return {id_ for _, id_ in cluster.members[2].server.broker.manager.replica_fetchers.fetchers()}


def test_fetchers_are_as_many_as_the_setting_says(cluster: LakeCluster) -> None:
    topic = NewTopic("t", num_partitions=16, replica_assignment=[[1, 2]] * 16)
    admin = cluster.admin()
    admin.create_topics([topic])["t"].result(PATIENCE)
    cluster.wait_for(lambda: fetchers(cluster) == {0}, "one fetcher")
    make(cluster, "", "num.replica.fetchers", "2")
    cluster.wait_for(lambda: fetchers(cluster) == {0, 1}, "two fetchers")
    make(cluster, "2", "num.replica.fetchers", "4")
    cluster.wait_for(lambda: fetchers(cluster) == {0, 1, 2, 3}, "four fetchers")
    make(cluster, "2", "num.replica.fetchers", None)
    cluster.wait_for(lambda: fetchers(cluster) == {0, 1}, "two fetchers again")
    make(cluster, "", "num.replica.fetchers", None)
    cluster.wait_for(lambda: fetchers(cluster) == {0}, "one fetcher again")


def test_producers_are_remembered_as_long_as_the_setting_says(cluster: LakeCluster) -> None:
    manager = cluster.members[1].server.broker.manager
    for name, value, expected in (("", "5000", 5000), ("1", "7000", 7000), ("1", None, 5000), ("", None, 86_400_000)):
        make(cluster, name, "producer.id.expiration.ms", value)
        cluster.wait_for(lambda expected=expected: manager.producer_id_expiration_ms == expected, f"{expected} ms")


@pytest.mark.parametrize("node", [1, CONTROLLER])
def test_connections_beyond_the_limit_wait_until_it_is_raised(cluster: LakeCluster, node: int) -> None:
    server = cluster.members[node].server
    listener = server.listeners[0]
    make(cluster, "", "max.connections", "1")
    cluster.wait_for(lambda: listener.limits.max_connections == 1, "the limit")
    waiting = [Wire("127.0.0.1", listener.port) for _ in range(3)]
    for one in waiting:
        one.send(frame_of("api_versions", 0, {}))
    make(cluster, "", "max.connections", None)
    for one in waiting:
        assert one.receive() is not None
        one.close()


def test_a_leader_is_elected_uncleanly_when_all_brokers_may_be(tmp_path: Path) -> None:
    with lake_cluster(tmp_path, brokers=(), controllers=()) as cluster:
        cluster.start_controller(CONTROLLER, **SHORT_SESSION, **{"unclean.leader.election.interval.ms": "200"})
        for id_ in (1, 2):
            cluster.start_broker(id_)
        cluster.await_unfenced(1, 2)
        admin = cluster.admin()
        admin.create_topics([NewTopic("t", num_partitions=1, replica_assignment=[[1, 2]])])["t"].result(PATIENCE)
        controller: Any = cluster.members[CONTROLLER].server.node
        topics = lambda: controller.view.image.topics  # noqa: E731
        cluster.wait_for(lambda: topics().get_topic("t") is not None, "the topic")

        def partition() -> tuple[int, tuple[int, ...]]:
            (found,) = topics().get_topic("t").partitions.values()
            return found.leader, tuple(found.isr)

        cluster.wait_for(lambda: partition() == (1, (1, 2)), "broker 1 to lead")
        cluster.members.pop(2).stop()
        cluster.wait_for(lambda: partition() == (1, (1,)), "broker 2 to be out of the ISR")
        cluster.members.pop(1).stop()
        cluster.wait_for(lambda: partition()[0] == -1, "no broker to lead")
        cluster.start_broker(2)
        cluster.await_unfenced(2)
        assert partition()[0] == -1, "broker 2 may lack records"
        make(cluster, "", "unclean.leader.election.enable", "true")
        cluster.wait_for(lambda: partition() == (2, (2,)), "broker 2 to lead")
