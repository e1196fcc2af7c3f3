"""The updates of a broker's parts: their order, the calls of coordinators, and the effect of a fault."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import attrs
import pytest

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.delta.topics.topics_delta import TopicsDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.publisher.broker_metadata_publisher import BrokerMetadataPublisher, BrokerParts, is_stray_replica
from kraftlake.publisher.coordinator_recorder import (
    CoordinatorRecorder,
    Elected,
    NewImage,
    PartitionsDeleted,
    Resigned,
    Started,
)
from kraftlake.publisher.driven import StrayCheck
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.records import metadata_records as r
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from tests.publisher.updates import Cluster, broker, cluster, new_leader, topic_of
from tests.replay.loader.test_metadata_loader import Faults
from tests.replay.made_logs import topic, uuid_of

ME = 1


class Parts:
    """Every part of a broker: notes what is called, and fails at what the test says."""

    def __init__(self, *failing: str) -> None:
        self.calls: list[str] = []
        self.failing = set(failing)
        self.cache_offsets: list[int] = []
        self.cache = MetadataCache(ME)

    def note(self, call: str) -> None:
        self.calls.append(call)
        self.cache_offsets.append(self.cache.image.offset)
        if call in self.failing:
            raise RuntimeError(f"{call} fails")


@attrs.frozen
class Logs:
    parts: Parts

    def startup(self, topics: Collection[str], is_stray: StrayCheck) -> None:
        self.parts.note(f"logs.startup {','.join(sorted(topics))}")

    def recover_abandoned_future_logs(self, broker_id: int, topics: TopicsImage) -> None:
        self.parts.note(f"logs.recover {broker_id}")


@attrs.frozen
class Replicas:
    parts: Parts

    def startup(self) -> None:
        self.parts.note("replicas.startup")

    def stop_reassigned(self, new_image: MetadataImage) -> None:
        self.parts.note("replicas.stop_reassigned")

    def apply_delta(self, topics_delta: TopicsDelta, new_image: MetadataImage) -> None:
        self.parts.note("replicas.apply_delta")

    def start_high_watermark_check_point_thread(self) -> None:
        self.parts.note("replicas.high_watermarks")


@attrs.frozen
class Follower(MetadataPublisher):
    parts: Parts
    name: str

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        self.parts.note(self.name)


class Noting(CoordinatorRecorder):
    """A recorder that also records its calls among those of the other parts."""

    def __init__(self, parts: Parts, kind: str) -> None:
        super().__init__()
        self._parts, self._kind = parts, kind

    def startup(self, partition_count: Callable[[], int]) -> None:
        super().startup(partition_count)
        self._parts.note(f"{self._kind}.startup")

    def on_election(self, partition: int, leader_epoch: int) -> None:
        super().on_election(partition, leader_epoch)
        self._parts.note(f"{self._kind}.election")

    def on_partitions_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        super().on_partitions_deleted(partitions)
        self._parts.note(f"{self._kind}.deleted")

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage) -> None:
        super().on_metadata_update(delta, new_image)
        self._parts.note(f"{self._kind}.image")


@attrs.frozen
class Broker:
    parts: Parts
    publisher: BrokerMetadataPublisher
    group: CoordinatorRecorder
    transaction: CoordinatorRecorder
    share: CoordinatorRecorder
    faults: Faults
    fatal: Faults


def started(*failing: str, share: bool = True) -> Broker:
    parts = Parts(*failing)
    group, transaction, shared = (Noting(parts, kind) for kind in ("group", "transaction", "share"))
    faults, fatal = Faults(), Faults()
    publisher = BrokerMetadataPublisher(
        ME,
        parts.cache,
        BrokerParts(
            log_manager=Logs(parts),
            replica_manager=Replicas(parts),
            group_coordinator=group,
            transaction_coordinator=transaction,
            share_coordinator=shared if share else None,
            on_share_version=lambda level: parts.note(f"share.version {level}"),
            followers=(Follower(parts, "configs"), Follower(parts, "quotas"), Follower(parts, "acls")),
            state_topic_partitions={"__transaction_state": 7},
        ),
        fault_handler=faults,
        fatal_fault_handler=fatal,
    )
    return Broker(parts, publisher, group, transaction, shared, faults, fatal)


OFFSETS = topic_of("__consumer_offsets", 1, (ME, (ME, 2)), (2, (2, ME)), (2, (2, 3)))


def test_the_first_update_starts_everything_in_kafkas_order_and_high_watermarks_last() -> None:
    broker_, made = started(), cluster(broker(ME), *OFFSETS)
    made.introduce(broker_.publisher)
    assert broker_.parts.calls == [
        "logs.startup __consumer_offsets",
        f"logs.recover {ME}",
        "replicas.startup",
        "group.startup",
        "transaction.startup",
        "share.startup",
        "replicas.apply_delta",
        "group.election",
        "configs",
        "quotas",
        "acls",
        "group.image",
        "share.image",
        "replicas.high_watermarks",
    ]
    assert set(broker_.parts.cache_offsets) == {made.image.offset}, "the cache is first"
    assert broker_.publisher.first_publish_done
    assert broker_.group.calls[0] == Started(3)
    assert broker_.transaction.calls[0] == Started(7), "the topic isn't there yet"
    assert broker_.share.calls[0] == Started(50)


def test_later_updates_apply_only() -> None:
    broker_, made = started(), cluster(broker(ME))
    made.introduce(broker_.publisher)
    broker_.parts.calls.clear()
    made.change(topic(5))
    assert broker_.parts.calls == ["replicas.apply_delta", "configs", "quotas", "acls", "group.image", "share.image"]
    broker_.parts.calls.clear()
    made.change(r.NoOpRecord())
    assert broker_.parts.calls == ["configs", "quotas", "acls", "group.image", "share.image"], "no topic changed"


def running(*messages: object, share: bool = True) -> tuple[Broker, Cluster]:
    broker_, made = started(share=share), cluster(broker(ME), broker(2), *messages)  # type: ignore[arg-type]
    made.introduce(broker_.publisher)
    for recorder in (broker_.group, broker_.transaction, broker_.share):
        recorder.calls.clear()
    return broker_, made


def heard(recorder: CoordinatorRecorder) -> list[object]:
    return [call for call in recorder.calls if not isinstance(call, NewImage)]


def test_a_coordinator_leads_the_partitions_of_its_topic_that_this_broker_leads() -> None:
    broker_, made = running(*OFFSETS)
    assert broker_.group.leading == {0: 0}
    made.change(new_leader(1, 1, ME), new_leader(1, 0, 2))
    assert heard(broker_.group) == [Elected(1, 1), Resigned(0, 1)]
    assert broker_.group.leading == {1: 1}
    assert heard(broker_.transaction) == heard(broker_.share) == []


def test_a_change_without_a_new_leader_epoch_does_not_notify_the_coordinator() -> None:
    broker_, made = running(*OFFSETS)
    made.change(r.PartitionChangeRecord(topic_id=uuid_of(1), partition_id=0, isr=(ME,)))
    assert heard(broker_.group) == []


def test_a_removed_replica_resigns_without_an_epoch() -> None:
    broker_, made = running(*OFFSETS)
    made.change(new_leader(1, 0, 2, replicas=(2, 3), isr=(2, 3)))
    assert heard(broker_.group) == [Resigned(0, None)]


def test_deleting_a_state_topic_resigns_its_partitions_and_notifies_the_group_coordinator() -> None:
    broker_, made = running(*OFFSETS)
    made.change(r.RemoveTopicRecord(topic_id=uuid_of(1)))
    assert heard(broker_.group) == [
        Resigned(0, 0),
        PartitionsDeleted(tuple(TopicPartition("__consumer_offsets", number) for number in range(3))),
    ]


def test_a_state_topic_that_is_deleted_and_created_again_at_once_resigns_then_leads() -> None:
    broker_, made = running(*OFFSETS)
    made.change(
        r.RemoveTopicRecord(topic_id=uuid_of(1)), *topic_of("__consumer_offsets", 9, (ME, (ME,)), leader_epoch=4)
    )
    assert heard(broker_.group)[:2] == [Resigned(0, 0), Elected(0, 4)]


@pytest.mark.parametrize(("topic", "kind"), [("__transaction_state", "transaction"), ("__share_group_state", "share")])
def test_each_coordinator_is_notified_of_its_own_topic(topic: str, kind: str) -> None:
    broker_, made = running()
    made.change(*topic_of(topic, 3, (ME, (ME,)), leader_epoch=2))
    recorders = {"group": broker_.group, "transaction": broker_.transaction, "share": broker_.share}
    assert {name: heard(recorder) for name, recorder in recorders.items() if heard(recorder)} == {kind: [Elected(0, 2)]}


def test_without_share_groups_their_topic_notifies_no_coordinator() -> None:
    broker_, made = running(share=False)
    made.change(*topic_of("__share_group_state", 3, (ME, (ME,))))
    assert heard(broker_.share) == []
    assert broker_.faults.told == broker_.fatal.told == []


def test_the_group_coordinator_is_notified_of_the_deleted_partitions_of_every_topic() -> None:
    broker_, made = running(*topic_of("foo", 5, (2, (2,)), (2, (2,))))
    made.change(r.RemoveTopicRecord(topic_id=uuid_of(5)))
    assert heard(broker_.group) == [PartitionsDeleted((TopicPartition("foo", 0), TopicPartition("foo", 1)))]


FAULTS = {
    "replicas.apply_delta": "applying the topics delta of initial MetadataDelta up to 5",
    "group.election": "updating the group coordinator with local changes of initial MetadataDelta up to 5",
    "configs": "updating configs with initial MetadataDelta up to 5",
    "acls": "updating acls with initial MetadataDelta up to 5",
    "group.image": "giving the group coordinator the new image of initial MetadataDelta up to 5",
    "share.image": "giving the share coordinator the new image of initial MetadataDelta up to 5",
    "replicas.high_watermarks": "starting the high watermark checkpoints",
}


@pytest.mark.parametrize("failing", FAULTS)
def test_a_failing_part_is_reported_by_name_and_the_others_are_still_updated(failing: str) -> None:
    broker_, whole = started(failing), started()
    made = cluster(broker(ME), *OFFSETS)
    made.introduce(broker_.publisher)
    made.introduce(whole.publisher)
    assert broker_.parts.calls == whole.parts.calls
    assert [(what, str(cause)) for what, cause in broker_.faults.told] == [(FAULTS[failing], f"{failing} fails")]
    assert broker_.fatal.told == []


@pytest.mark.parametrize("failing", ["logs.recover 1", "replicas.startup", "group.startup", "share.startup"])
def test_a_manager_that_does_not_start_is_fatal_and_the_others_still_start(failing: str) -> None:
    broker_, whole = started(failing), started()
    made = cluster(broker(ME), *OFFSETS)
    made.introduce(broker_.publisher)
    made.introduce(whole.publisher)
    assert broker_.parts.calls == whole.parts.calls
    assert [str(cause) for _, cause in broker_.fatal.told] == [f"{failing} fails"]
    assert broker_.faults.told == []


def test_a_log_is_stray_if_the_image_does_not_assign_it_to_this_broker() -> None:
    made = cluster(*topic_of("foo", 1, (1, (1, 2))))
    topics = made.image.topics
    assert not is_stray_replica(2, topics, uuid_of(1), 0)
    assert is_stray_replica(3, topics, uuid_of(1), 0), "others host it"
    assert is_stray_replica(2, topics, uuid_of(1), 1), "no such partition"
    assert is_stray_replica(2, topics, uuid_of(9), 0), "no such topic"
    assert is_stray_replica(2, topics, None, 0), "a log without an id is of no topic"


def test_share_groups_are_notified_when_their_feature_changes() -> None:
    broker_, made = running()
    broker_.parts.calls.clear()
    for level in (1, 1, 0):
        made.change(r.FeatureLevelRecord(name="share.version", feature_level=level))
    told = [call for call in broker_.parts.calls if call.startswith("share.version")]
    assert told == ["share.version 1", "share.version 0"]


def test_a_whole_log_notifies_coordinators_as_its_image_does() -> None:
    first, second = started(), started()
    made = cluster(broker(ME), *OFFSETS, new_leader(1, 1, ME))
    made.introduce(first.publisher)
    everything = MetadataDelta(MetadataImage.EMPTY)
    for message in (broker(ME), *OFFSETS, new_leader(1, 1, ME)):
        everything.replay(message)
    second.publisher.on_metadata_update(everything, made.image, SnapshotManifest(provenance=made.image.provenance))
    assert first.group.calls == second.group.calls
    assert first.group.leading == {0: 0, 1: 1}


def test_a_snapshot_while_it_runs_stops_replicas_that_are_on_other_brokers_first() -> None:
    broker_, made = started(), cluster(broker(ME))
    made.introduce(broker_.publisher)
    assert "replicas.stop_reassigned" not in broker_.parts.calls
    broker_.parts.calls.clear()
    made.change(topic(5))
    assert broker_.parts.calls[0] == "replicas.apply_delta"
    broker_.parts.calls.clear()
    made.introduce(broker_.publisher)
    assert broker_.parts.calls[:2] == ["replicas.stop_reassigned", "replicas.apply_delta"]


def test_it_is_a_publisher_of_the_loader() -> None:
    broker_ = started()
    assert broker_.publisher.name == "BrokerMetadataPublisher"
    broker_.publisher.on_controller_change(LeaderAndEpoch.UNKNOWN)
    broker_.publisher.close()
    assert broker_.parts.calls == []
