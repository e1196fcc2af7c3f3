"""Creation and deletion of topics, and additional partitions: records and errors."""

from __future__ import annotations

from typing import Any

import pytest

from kraftlake.controller.errors import ControllerApiError
from kraftlake.controller.replication import topics as topic_commands
from kraftlake.controller.replication.topics import (
    CreatableTopic,
    NewPartitions,
    create_partitions,
    create_topics,
    delete_topics,
)
from kraftlake.image.configurations_image import ConfigResource
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kraftlake.records.uuid import Uuid
from tests.controller.controlled_cluster import ControlledCluster, directory


@pytest.fixture
def cluster() -> ControlledCluster:
    cluster = ControlledCluster()
    cluster.start(1, 2, 3)
    return cluster


def test_a_new_topic_has_a_topic_record_config_records_and_partition_records(cluster: ControlledCluster) -> None:
    created = cluster.create("orders", assignments=[(0, (1, 2)), (1, (2, 3))], configs={"retention.ms": "1000"})
    assert (created.num_partitions, created.replication_factor) == (2, 2)
    topic, config, first, second = cluster.added
    assert topic == TopicRecord(name="orders", topic_id=created.topic_id)
    assert config == ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1000")
    assert isinstance(first, PartitionRecord)
    assert isinstance(second, PartitionRecord)
    assert (second.partition_id, second.replicas, second.isr, second.leader) == (1, (2, 3), (2, 3), 2)
    assert (second.leader_epoch, second.partition_epoch) == (0, 0)
    assert second.directories == (directory(2), directory(3)), "a broker with one directory has no choice"
    assert created.configs["retention.ms"] == "1000"
    assert created.configs["min.insync.replicas"] == "1"


def test_defaults_are_the_controllers(cluster: ControlledCluster) -> None:
    created = cluster.create("orders")
    assert (created.num_partitions, created.replication_factor) == (1, 1)


def test_fenced_replicas_are_not_in_sync(cluster: ControlledCluster) -> None:
    cluster.heartbeat(1, want_fence=True)
    cluster.assigned("orders", (1, 2))
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))


def test_with_elr_a_new_topic_with_its_own_min_isr_clears_eligible_leaders(cluster: ControlledCluster) -> None:
    cluster.assigned("orders", (1, 2), configs={"min.insync.replicas": "2"})
    assert ClearElrRecord(topic_name="orders") in cluster.added


REFUSED: list[tuple[dict[str, Any], ErrorCode]] = [
    ({"name": ""}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ({"name": "a b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ({"name": ".."}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ({"name": "__cluster_metadata"}, ErrorCode.INVALID_REQUEST),
    ({"name": "x" * 250}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ({"name": "taken"}, ErrorCode.TOPIC_ALREADY_EXISTS),
    ({"name": "under.score"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
    ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ({"replication_factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
    ({"assignments": [(0, (1,))], "replication_factor": 1}, ErrorCode.INVALID_REQUEST),
    ({"assignments": [(0, (1,))], "num_partitions": 1}, ErrorCode.INVALID_REQUEST),
    ({"assignments": [(0, (1,)), (0, (2,))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ({"assignments": [(0, (1,)), (2, (2,))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ({"assignments": [(0, (1, 1))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ({"assignments": [(0, (9,))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ({"assignments": [(0, ())]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ({"assignments": [(0, (1,)), (1, (1, 2))]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ({"configs": {"retention.ms": None}}, ErrorCode.INVALID_CONFIG),
    ({"configs": {"retention.ms": "soon"}}, ErrorCode.INVALID_CONFIG),
    ({"configs": {"no.such.config": "1"}}, ErrorCode.INVALID_CONFIG),
    ({"configs": {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}}, ErrorCode.INVALID_CONFIG),
]


@pytest.mark.parametrize(("topic", "error"), REFUSED)
def test_an_invalid_topic_is_refused_and_the_others_are_created(
    cluster: ControlledCluster, topic: dict[str, Any], error: ErrorCode
) -> None:
    cluster.create("taken")
    cluster.create("under_score")
    topics = [CreatableTopic(**({"name": "new"} | topic)), CreatableTopic(name="fine")]
    answers = cluster.run(lambda state: create_topics(state, topics))
    assert answers[topics[0].name].error.error is error
    assert answers["fine"].error.error is ErrorCode.NONE
    assert [message.name for message in cluster.added if isinstance(message, TopicRecord)] == ["fine"]


def test_all_replicas_fenced_is_refused(cluster: ControlledCluster) -> None:
    cluster.heartbeat(1, want_fence=True)
    assert cluster.create("orders", assignments=[(0, (1,))]).error.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    for broker in (2, 3):
        cluster.heartbeat(broker, want_fence=True)
    assert cluster.create("orders").error.error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_validating_creates_nothing(cluster: ControlledCluster) -> None:
    answers = cluster.run(lambda state: create_topics(state, [CreatableTopic(name="orders")], validate_only=True))
    assert answers["orders"].num_partitions == 1
    assert cluster.added == []


def test_more_than_ten_thousand_partitions_at_once_are_refused(cluster: ControlledCluster) -> None:
    for topics in (
        [CreatableTopic(name="orders", num_partitions=10_001)],
        [CreatableTopic(name=name, num_partitions=5_000) for name in ("a", "b")],  # and two topic records
    ):
        with pytest.raises(ControllerApiError) as refused:
            cluster.run(lambda state, topics=topics: create_topics(state, topics))
        assert refused.value.error is ErrorCode.POLICY_VIOLATION
        assert cluster.image.topics.is_empty()


def test_a_deleted_topic_takes_its_configs_with_it(cluster: ControlledCluster) -> None:
    created = cluster.create("orders", configs={"retention.ms": "1000"})
    unknown = Uuid(b"nobody-has-this!")
    answers = cluster.run(lambda state: delete_topics(state, [created.topic_id, unknown]))
    assert [answers[topic_id].error for topic_id in (created.topic_id, unknown)] == [
        ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID,
    ]  # fmt: skip
    assert cluster.added == [RemoveTopicRecord(topic_id=created.topic_id)]
    assert cluster.image.configs.config_map(ConfigResource(2, "orders")) == {}


def test_partitions_are_added_after_the_existing_ones(cluster: ControlledCluster) -> None:
    cluster.assigned("orders", (1, 2))
    more = NewPartitions(name="orders", count=3, assignments=[(2, 3), (3, 1)])
    assert not cluster.run(lambda state: create_partitions(state, [more]))["orders"].is_failure
    assert [cluster.partition("orders", number).leader for number in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("more", "error"),
    [
        (NewPartitions(name="nobody", count=3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions(name="orders", count=1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="orders", count=0), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions(name="orders", count=3, assignments=[(1, 2)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions(name="orders", count=2, assignments=[(1,)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions(name="orders", count=2, assignments=[(1, 9)]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_invalid_additional_partitions_are_refused(
    cluster: ControlledCluster, more: NewPartitions, error: ErrorCode
) -> None:
    cluster.assigned("orders", (1, 2))
    assert cluster.run(lambda state: create_partitions(state, [more]))[more.name].error is error
    assert cluster.added == []


def test_a_topic_that_a_request_creates_twice_is_refused_and_the_others_are_created(cluster: ControlledCluster) -> None:
    wanted = [CreatableTopic(name=name, assignments=[(0, (1,))]) for name in ("orders", "bills", "orders")]
    answers = cluster.run(lambda state: create_topics(state, wanted))
    assert {name: answer.error.error for name, answer in answers.items()} == {
        "orders": ErrorCode.INVALID_REQUEST,
        "bills": ErrorCode.NONE,
    }
    assert [type(message) for message in cluster.added] == [TopicRecord, PartitionRecord]


def test_a_topic_that_a_request_names_twice_is_neither_deleted_nor_extended(cluster: ControlledCluster) -> None:
    topic_id = cluster.create("orders", assignments=[(0, (1,))]).topic_id
    other = cluster.create("bills", assignments=[(0, (1,))]).topic_id
    answers = cluster.run(lambda state: delete_topics(state, [topic_id, other, topic_id]))
    assert {each: error.error for each, error in answers.items()} == {
        topic_id: ErrorCode.INVALID_REQUEST,
        other: ErrorCode.NONE,
    }
    assert cluster.added == [RemoveTopicRecord(topic_id=other)]
    more = [NewPartitions(name="orders", count=count) for count in (2, 3)]
    grown = cluster.run(lambda state: create_partitions(state, more))
    assert {name: error.error for name, error in grown.items()} == {"orders": ErrorCode.INVALID_REQUEST}
    assert cluster.added == []


@pytest.mark.parametrize("validate_only", [True, False])
def test_a_topic_whose_records_do_not_fit_one_batch_is_refused(cluster: ControlledCluster, validate_only: bool) -> None:
    """10,000 partitions are allowed, and are one record too many with the topic's own."""
    wanted = [CreatableTopic(name="orders", num_partitions=10_000, replication_factor=1)]
    with pytest.raises(ControllerApiError) as refusal:
        cluster.run(lambda state: create_topics(state, wanted, validate_only=validate_only))
    assert refusal.value.error is ErrorCode.POLICY_VIOLATION


def test_a_cluster_takes_a_number_of_partitions_for_each_broker(
    cluster: ControlledCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A storm of requests of 10,000 partitions ends in an error, not in a broker without memory."""
    monkeypatch.setattr(topic_commands, "MOST_PARTITIONS_PER_BROKER", 5)
    cluster.create("orders", assignments=[(number, (1,)) for number in range(14)])
    more = [NewPartitions(name="orders", count=16)]
    with pytest.raises(
        ControllerApiError, match="would have 16 partitions, and may have 15: 5 for each of its 3"
    ) as no:
        cluster.run(lambda state: create_partitions(state, more))
    assert no.value.api_error.error is ErrorCode.POLICY_VIOLATION
    wanted = [CreatableTopic(name="bills", num_partitions=2, replication_factor=1)]
    with pytest.raises(ControllerApiError, match="would have 16 partitions"):
        cluster.run(lambda state: create_topics(state, wanted))
    assert not cluster.run(lambda state: create_partitions(state, [NewPartitions(name="orders", count=15)]))[
        "orders"
    ].is_failure
