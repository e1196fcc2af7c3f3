"""The updates of a broker's parts: their order, and the effect of a fault."""

from __future__ import annotations

from collections.abc import Collection

import attrs
import pytest

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.topics.topics_image import TopicsImage
from kraftlake.publisher.broker_metadata_publisher import BrokerMetadataPublisher, BrokerParts, is_stray_replica
from kraftlake.publisher.driven import StrayCheck
from kraftlake.publisher.metadata_cache import MetadataCache
from kraftlake.records import metadata_records as r
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from tests.publisher.updates import broker, cluster, topic_of
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

    def start_high_watermark_check_point_thread(self) -> None:
        self.parts.note("replicas.high_watermarks")


@attrs.frozen
class Follower(MetadataPublisher):
    parts: Parts
    name: str

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        self.parts.note(self.name)


@attrs.frozen
class Broker:
    parts: Parts
    publisher: BrokerMetadataPublisher
    faults: Faults
    fatal: Faults


def started(*failing: str) -> Broker:
    parts = Parts(*failing)
    faults, fatal = Faults(), Faults()
    publisher = BrokerMetadataPublisher(
        ME,
        parts.cache,
        BrokerParts(
            log_manager=Logs(parts),
            replica_manager=Replicas(parts),
            apply_delta=lambda topics_delta, new_image: parts.note("replicas.apply_delta"),
            followers=(Follower(parts, "configs"), Follower(parts, "quotas"), Follower(parts, "acls")),
        ),
        fault_handler=faults,
        fatal_fault_handler=fatal,
    )
    return Broker(parts, publisher, faults, fatal)


OFFSETS = topic_of("__consumer_offsets", 1, (ME, (ME, 2)), (2, (2, ME)), (2, (2, 3)))


def test_the_first_update_starts_everything_in_kafkas_order_and_high_watermarks_last() -> None:
    broker_, made = started(), cluster(broker(ME), *OFFSETS)
    made.introduce(broker_.publisher)
    assert broker_.parts.calls == [
        "logs.startup __consumer_offsets",
        f"logs.recover {ME}",
        "replicas.startup",
        "replicas.apply_delta",
        "configs",
        "quotas",
        "acls",
        "replicas.high_watermarks",
    ]
    assert set(broker_.parts.cache_offsets) == {made.image.offset}, "the cache is first"
    assert broker_.publisher.first_publish_done


def test_later_updates_apply_only() -> None:
    broker_, made = started(), cluster(broker(ME))
    made.introduce(broker_.publisher)
    broker_.parts.calls.clear()
    made.change(topic(5))
    assert broker_.parts.calls == ["replicas.apply_delta", "configs", "quotas", "acls"]
    broker_.parts.calls.clear()
    made.change(r.NoOpRecord())
    assert broker_.parts.calls == ["configs", "quotas", "acls"], "no topic changed"


FAULTS = {
    "replicas.apply_delta": "applying the topics delta of initial MetadataDelta up to 5",
    "configs": "updating configs with initial MetadataDelta up to 5",
    "acls": "updating acls with initial MetadataDelta up to 5",
    "replicas.high_watermarks": "starting the high watermark checkpoints",
}


@pytest.mark.parametrize("failing", FAULTS)
def test_a_failing_part_is_reported_by_name_and_the_others_are_still_updated(failing: str) -> None:
    broker_, whole = started(failing), started()
    made = cluster(broker(ME), *OFFSETS)
    made.introduce(broker_.publisher)
    made.introduce(whole.publisher)
    assert broker_.parts.calls == whole.parts.calls
    assert [(what, str(cause)) for what, cause in broker_.faults.handled] == [(FAULTS[failing], f"{failing} fails")]
    assert broker_.fatal.handled == []


@pytest.mark.parametrize("failing", ["logs.recover 1", "replicas.startup"])
def test_a_manager_that_does_not_start_is_fatal_and_the_others_still_start(failing: str) -> None:
    broker_, whole = started(failing), started()
    made = cluster(broker(ME), *OFFSETS)
    made.introduce(broker_.publisher)
    made.introduce(whole.publisher)
    assert broker_.parts.calls == whole.parts.calls
    assert [str(cause) for _, cause in broker_.fatal.handled] == [f"{failing} fails"]
    assert broker_.faults.handled == []


def test_a_log_is_stray_if_the_image_does_not_assign_it_to_this_broker() -> None:
    made = cluster(*topic_of("foo", 1, (1, (1, 2))))
    topics = made.image.topics
    assert not is_stray_replica(2, topics, uuid_of(1), 0)
    assert is_stray_replica(3, topics, uuid_of(1), 0), "others host it"
    assert is_stray_replica(2, topics, uuid_of(1), 1), "no such partition"
    assert is_stray_replica(2, topics, uuid_of(9), 0), "no such topic"
    assert is_stray_replica(2, topics, None, 0), "a log without an id is of no topic"


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
