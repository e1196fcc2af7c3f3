"""The rooms together: brokers lead, follow and replicate by the records that a controller writes to a lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftlake.controller.config import ControllerConfig
from kraftlake.controller.configs.alter_configs import legacy_alter_configs
from kraftlake.controller.quorum.bootstrap import BootstrapMetadata, BootstrapSnapshot
from kraftlake.controller.quorum.quorum_controller import QuorumController
from kraftlake.controller.replication.topics import CreatableTopic, create_topics, delete_topics
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.configurations_image import TOPIC_RESOURCE, ConfigResource
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.partition_registration import PartitionRegistration
from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.requests.log_dir_moves import alter_replica_log_dirs
from simulator.data_batches import batch
from tests.at_least_one import at_least_one
from tests.controller.controlled_cluster import CLUSTER_ID
from tests.simulation.brokers_on_a_lake import LONG_LAG, LakeCluster
from tests.waiting import PATIENCE

FOO0, FOO1 = TopicPartition("foo", 0), TopicPartition("foo", 1)


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LakeCluster]:
    """Three brokers; a parameter is how long a replica may lag, in ms."""
    lake = tmp_path / "lake"
    bootstrap = BootstrapSnapshot(metadata=BootstrapMetadata.of(), timestamp=1_700_000_000_000)
    contents = Contents(snapshots=[(bootstrap, bootstrap.batches())])
    MetadataLog.create(lake, CLUSTER_ID, "controlled", contents=contents, durability="os")
    config = ControllerConfig(node_id=9, cluster_id=CLUSTER_ID, broker_session_timeout_ms=600_000)
    controller = QuorumController(MetadataLog.open(lake, durability="os"), config, claim_at_once=True)
    made = LakeCluster(lake, controller, getattr(request, "param", LONG_LAG))
    try:
        made.start(1, 2, 3)
        yield made
        assert [node.faults.handled for node in made.nodes.values()] == [[], [], []]
    finally:
        made.stop()
        controller.close()


def create(cluster: LakeCluster) -> None:
    """foo-0 is led by broker 1, foo-1 by broker 2."""
    wanted = CreatableTopic(name="foo", assignments=((0, (1, 2, 3)), (1, (2, 3, 1))))
    cluster.controller.submit(lambda state: create_topics(state, [wanted])).result(PATIENCE)
    for node in cluster.nodes.values():
        node.await_image(lambda image: foo(image, 1) is not None)


def foo(image: MetadataImage, number: int = 0) -> PartitionRegistration | None:
    topic = image.topics.get_topic("foo")
    return None if topic is None else topic.partitions.get(number)


def test_brokers_lead_follow_and_replicate_as_the_controller_decides(cluster: LakeCluster) -> None:
    create(cluster)
    assert {id_: node.roles() for id_, node in cluster.nodes.items()} == {
        1: ({FOO0}, {FOO1}),
        2: ({FOO1}, {FOO0}),
        3: (set(), {FOO0, FOO1}),
    }
    answer = cluster.nodes[1].produce(FOO0, batch(b"a"))
    assert (answer.error, answer.base_offset) == (ErrorCode.NONE, 0)
    assert [node.logs.get_log(FOO0).log_end_offset for node in cluster.nodes.values()] == [1, 1, 1]


def test_a_broker_that_leaves_hands_over_its_leadership_and_joins_again_later(cluster: LakeCluster) -> None:
    create(cluster)
    cluster.nodes[1].produce(FOO0, batch(b"a"))
    cluster.nodes[1].heartbeat(want_fence=True)
    for node in cluster.nodes.values():
        node.await_image(lambda image: foo(image).leader == 2)
    assert FOO0 in cluster.nodes[2].roles()[0]
    assert FOO0 in cluster.nodes[1].roles()[1]
    answer = cluster.nodes[2].produce(FOO0, batch(b"b"))
    assert (answer.error, answer.base_offset) == (ErrorCode.NONE, 1)
    cluster.nodes[1].heartbeat()
    cluster.nodes[2].await_image(lambda image: set(foo(image).isr) == {1, 2, 3})
    answer = cluster.nodes[2].produce(FOO0, batch(b"c"))
    logs = [node.logs.get_log(FOO0) for node in cluster.nodes.values()]
    assert answer.error is ErrorCode.NONE
    assert [log.batches for log in logs] == [logs[1].batches] * 3
    assert logs[1].log_end_offset == 3


@pytest.mark.parametrize("cluster", [1_000], indirect=True)
def test_a_stopped_follower_is_removed_from_the_isr_by_its_leader(cluster: LakeCluster) -> None:
    create(cluster)
    cluster.nodes[3].manager.replica_fetchers.close()
    cluster.nodes[1].produce(FOO0, batch(b"a"))
    image = cluster.nodes[1].await_image(lambda image: set(foo(image).isr) == {1, 2})
    assert foo(image).leader == 1


def test_a_changed_topic_config_applies_to_the_logs_of_every_broker(cluster: LakeCluster) -> None:
    create(cluster)
    cluster.controller.submit(
        lambda state: legacy_alter_configs(state, {ConfigResource(TOPIC_RESOURCE, "foo"): {"min.insync.replicas": "4"}})
    ).result(PATIENCE)
    for node in at_least_one(cluster.nodes.values()):
        node.await_image(lambda image: bool(image.configs.config_map(ConfigResource(TOPIC_RESOURCE, "foo"))))
        assert {log.config.min_insync_replicas for log in node.logs.logs().values()} == {4}


def test_a_deleted_topic_is_deleted_on_every_broker(cluster: LakeCluster) -> None:
    create(cluster)
    topic = cluster.nodes[1].cache.image.topics.get_topic("foo")
    assert topic is not None
    topic_id = topic.id
    cluster.controller.submit(lambda state: delete_topics(state, [topic_id])).result(PATIENCE)
    for node in at_least_one(cluster.nodes.values()):
        node.await_image(lambda image: foo(image) is None)
        assert node.roles() == (set(), set())
        assert node.logs.logs() == {}


def test_the_controller_knows_the_directory_of_a_moved_replica(cluster: LakeCluster) -> None:
    create(cluster)
    cluster.nodes[1].produce(FOO0, batch(b"a"))
    follower = cluster.nodes[3]
    (other,) = set(follower.directories) - {follower.logs.get_log(FOO0).directory}
    assert alter_replica_log_dirs(follower.manager, {FOO0: other}) == {FOO0: ErrorCode.NONE}
    follower.await_image(
        lambda image: (
            foo(image).directory(3) == follower.directories[other] and follower.logs.get_log(FOO0).directory == other
        )
    )
    assert cluster.nodes[1].produce(FOO0, batch(b"b")).error is ErrorCode.NONE
    assert follower.logs.get_log(FOO0).log_end_offset == 2


def test_a_broker_that_stops_checkpoints_its_high_watermarks(cluster: LakeCluster) -> None:
    create(cluster)
    cluster.nodes[1].produce(FOO0, batch(b"a"))
    leader = cluster.nodes[1]
    leader.stop()
    assert leader.logs.checkpointed_high_watermark(leader.logs.get_log(FOO0).directory, FOO0) == 1
