"""The answers of the metadata cache: topics, partitions, brokers, quotas, credentials and features."""

from __future__ import annotations

from random import Random

import pytest
from structlog.testing import capture_logs

from kraftlake.image.topics.directory_id import LOST, UNASSIGNED
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.publisher.metadata_responses import Cursor, Node
from kraftlake.records import metadata_records as r
from kraftlake.records.schema import Message
from kraftlake.records.uuid import Uuid
from kraftlake.runtime.errors import UnwritableMetadataError
from tests.publisher.updates import DIRECTORY, Cluster, broker, cluster, topic_of
from tests.replay.made_logs import uuid_of

OTHER = "EXTERNAL"


def cache_of(*messages: Message) -> MetadataCache:
    cache = MetadataCache(1, random=Random(7))
    cache.update(cluster(*messages).image)
    return cache


def three_brokers() -> list[Message]:
    return [broker(1, "PLAINTEXT", OTHER, rack="a"), broker(2), broker(3, fenced=True)]


def test_topics_are_found_by_name_and_id() -> None:
    cache = cache_of(*topic_of("foo", 1, (1, (1,)), (1, (1,))), *topic_of("bar", 2))
    assert sorted(cache.all_topics()) == ["bar", "foo"]
    assert (cache.topic_name(uuid_of(2)), cache.topic_name(uuid_of(9))) == ("bar", None)
    assert cache.contains("bar")
    assert not cache.contains("nobody")


def test_a_partition_has_its_leader_and_isr() -> None:
    cache = cache_of(*topic_of("foo", 1, (2, (2, 1)), leader_epoch=5))
    state = cache.partition("foo", 0)
    assert state is not None
    assert (state.leader, state.leader_epoch, state.isr, state.partition_epoch) == (2, 5, (2, 1), 0)
    assert cache.partition("foo", 1) is None
    assert cache.partition("nobody", 0) is None


def test_a_random_broker_is_one_that_is_not_fenced() -> None:
    cache = cache_of(*three_brokers())
    assert {cache.random_alive_broker_id() for _ in range(50)} == {1, 2}
    assert MetadataCache(1).random_alive_broker_id() is None


def test_endpoints_are_those_of_the_listener_asked_for() -> None:
    cache = cache_of(*three_brokers(), *topic_of("foo", 1, (1, (1, 2, 3)), (2, (2,)), (9, (9,)), (3, (3,))))
    first = Node(id=1, host="host-1", port=9001, rack="a")
    assert [node.id for node in cache.alive_broker_nodes("PLAINTEXT")] == [1, 2]
    assert [(node.id, node.is_fenced) for node in cache.broker_nodes("PLAINTEXT")] == [
        (1, False),
        (2, False),
        (3, True),
    ]
    assert cache.partition_leader_endpoint("foo", 0, OTHER) == first
    assert cache.partition_leader_endpoint("foo", 1, OTHER) == Node.NO_NODE, "the leader has no such listener"
    assert cache.partition_leader_endpoint("foo", 2, OTHER) is None
    fenced = cache.partition_leader_endpoint("foo", 3, "PLAINTEXT")
    assert fenced is not None
    assert fenced.is_fenced


def test_a_metadata_response_has_errors_of_leaders_and_replicas() -> None:
    partitions = ((1, (1, 2)), (1, (1, 3)), (9, (9,)), (2, (2,)))
    cache = cache_of(*three_brokers(), *topic_of("foo", 1, *partitions), *topic_of("empty", 2))

    (topic,) = cache.topic_metadata(["foo", "empty", "nobody", "foo"], OTHER)
    assert (topic.name, topic.topic_id, topic.is_internal) == ("foo", uuid_of(1), False)
    assert [(p.leader_id, p.error) for p in topic.partitions] == [
        (1, ErrorCode.NONE),
        (1, ErrorCode.NONE),
        (-1, ErrorCode.LEADER_NOT_AVAILABLE),
        (-1, ErrorCode.LEADER_NOT_AVAILABLE),
    ]
    assert topic.partitions[1].offline_replicas == (3,)
    assert topic.partitions[0].offline_replicas == (2,), "it lacks the listener"

    (topic,) = cache.topic_metadata(["foo"], OTHER, error_unavailable_endpoints=True, error_unavailable_listeners=True)
    assert [(p.replica_nodes, p.error) for p in topic.partitions] == [
        ((1,), ErrorCode.REPLICA_NOT_AVAILABLE),
        ((1,), ErrorCode.REPLICA_NOT_AVAILABLE),
        ((), ErrorCode.LEADER_NOT_AVAILABLE),
        ((), ErrorCode.LISTENER_NOT_FOUND),
    ]


@pytest.mark.parametrize(
    ("directory", "online", "offline"),
    [
        (DIRECTORY, (DIRECTORY,), False),
        (DIRECTORY, (uuid_of(5),), True),
        (DIRECTORY, (), False),
        (LOST, (DIRECTORY,), True),
        (LOST, (), True),
        (UNASSIGNED, (DIRECTORY,), False),
    ],
)
def test_a_replica_in_a_directory_that_is_offline_is_offline(
    directory: Uuid, online: tuple[Uuid, ...], offline: bool
) -> None:
    name, partition = topic_of("foo", 1, (1, (1,)))
    assert isinstance(partition, r.PartitionRecord)
    partition = r.PartitionRecord(
        topic_id=uuid_of(1), replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0,
        partition_id=0, directories=(directory,),
    )  # fmt: skip
    cache = cache_of(broker(1, dirs=online), name, partition)
    (topic,) = cache.topic_metadata(["foo"], "PLAINTEXT")
    assert topic.partitions[0].offline_replicas == ((1,) if offline else ())


def test_topics_are_described_page_by_page() -> None:
    cache = cache_of(broker(1), *topic_of("a", 1, *[(1, (1,))] * 3), *topic_of("b", 2, *[(1, (1,))] * 2))
    page = cache.describe_topics(["a", "b"], "PLAINTEXT", limit=2)
    assert [len(topic.partitions) for topic in page.topics] == [2]
    assert page.next_cursor == Cursor("a", 2)
    page = cache.describe_topics(["a", "b"], "PLAINTEXT", limit=1, start_index=lambda name: 2 if name == "a" else 0)
    assert [(topic.name, [p.partition_index for p in topic.partitions]) for topic in page.topics] == [("a", [2])]
    assert page.next_cursor == Cursor("b", 0)
    page = cache.describe_topics(["b", "nobody", "no/body"], "PLAINTEXT")
    assert [topic.error for topic in page.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert page.next_cursor is None
    assert len(cache.describe_topics(["nobody"], "PLAINTEXT", ignore_errors=True).topics) == 0


def test_unequal_listeners_are_logged_once_and_fenced_brokers_do_not_count() -> None:
    made, cache = cluster(broker(1), broker(2, OTHER, fenced=True)), MetadataCache(1)
    with capture_logs() as logs:
        cache.update(made.image)
        assert logs == []
        made.change(broker(2, "PLAINTEXT", OTHER))
        cache.update(made.image)
        cache.update(made.image)
    assert [(entry["event"], entry["listeners"]) for entry in logs] == [
        ("listeners_differ", {"1": ["PLAINTEXT"], "2": ["EXTERNAL", "PLAINTEXT"]})
    ]


def test_a_reader_that_holds_an_image_does_not_see_the_next_one() -> None:
    made, cache = Cluster(), MetadataCache(1)
    before = cache.image
    made.change(*topic_of("foo", 1, (1, (1,))))
    cache.update(made.image)
    assert before.topics.is_empty()
    assert cache.contains("foo")


def test_features_hold_the_metadata_version_and_kraft_version() -> None:
    made = cluster(r.FeatureLevelRecord(name="group.version", feature_level=1))
    cache = MetadataCache(1, kraft_version=lambda: 1)
    with pytest.raises(UnwritableMetadataError, match="has no metadata"):
        cache.features()
    cache.update(made.image)
    features = cache.features()
    assert dict(features.levels) == {"metadata.version": 25, "group.version": 1, "kraft.version": 1}
    assert features.epoch == made.image.offset
