"""The time and the content of snapshots: the policy with a manual clock, and snapshots in a lake."""

from __future__ import annotations

from pathlib import Path

import attrs

from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_policy import SnapshotPolicy
from kraftlake.publisher.snapshot_generator import LakeSnapshotEmitter, SnapshotEmitterMetrics, SnapshotGenerator
from kraftlake.replay.loader.fold import snapshot_image
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LogDeltaManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replay.loader.quorum_state import QuorumState
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.event_queue import EventQueue
from kraftlake.runtime.metrics import MetricsRegistry
from tests.metadata_log.log_batches import UnsyncedDisk
from tests.publisher.updates import Cluster
from tests.replay.loader.test_metadata_loader import Faults
from tests.replay.made_logs import (
    TIME,
    begin,
    data,
    end,
    log_of,
    metadata_version,
    reference_image,
    topic,
    without_place,
)

DISK = UnsyncedDisk()


class Emitted:
    """An emitter that remembers, and can fail."""

    def __init__(self, fail: bool = False) -> None:
        self.offsets: list[int] = []
        self.quorums: list[QuorumState] = []
        self._fail = fail

    def maybe_emit(self, image: MetadataImage, quorum: QuorumState) -> None:
        self.offsets.append(image.offset)
        self.quorums.append(quorum)
        if self._fail:
            raise RuntimeError("disk full")


class Rig:
    def __init__(self, *, fail: bool = False, **bounds: int | None) -> None:
        self.clock = ManualClock(TIME)
        self.faults, self.emitted = Faults(), Emitted(fail)
        self.queue = EventQueue(self.clock, "snapshots")
        policy = SnapshotPolicy(**{"max_bytes": None, "max_records": None, "max_interval_ms": None, **bounds})  # type: ignore[arg-type]
        self.generator = SnapshotGenerator(
            self.emitted.maybe_emit, self.clock, self.faults, policy=policy, queue=self.queue,
            quorum=lambda: QuorumState(kraft_version=1),
        )  # fmt: skip
        self.made = Cluster()
        self.made.change(metadata_version())

    def log_delta(self, size: int, *, aligned: bool = True) -> None:
        delta = self.made.change(topic(self.made.image.offset))
        at = attrs.evolve(self.made.image.provenance, batch_aligned=aligned)
        manifest = LogDeltaManifest(provenance=at, base_offset=at.offset, num_batches=1, num_bytes=size, num_records=1)
        self.generator.on_metadata_update(delta, attrs.evolve(self.made.image, provenance=at), manifest)


def test_a_snapshot_is_due_after_the_maximum_number_of_bytes() -> None:
    rig = Rig(max_bytes=100)
    rig.log_delta(99)
    rig.queue.run_ready()
    assert rig.emitted.offsets == []
    rig.log_delta(1)
    rig.queue.run_ready()
    assert rig.emitted.offsets == [2]
    assert rig.emitted.quorums == [QuorumState(kraft_version=1)]
    rig.log_delta(99)
    rig.queue.run_ready()
    assert rig.emitted.offsets == [2], "the count began anew"


def test_a_snapshot_is_due_after_the_maximum_time_at_the_next_record() -> None:
    rig = Rig(max_interval_ms=1_000)
    rig.log_delta(1)
    rig.clock.advance(1_000)
    rig.queue.run_ready()
    assert rig.emitted.offsets == []
    rig.log_delta(1)
    rig.queue.run_ready()
    assert rig.emitted.offsets == [2]


def test_snapshots_do_not_overlap_and_counting_restarts_at_the_start_of_a_snapshot() -> None:
    rig = Rig(max_bytes=100)
    for _ in range(3):
        rig.log_delta(100)
    assert rig.queue.size == 1
    rig.queue.run_ready()
    assert rig.emitted.offsets == [1]
    rig.log_delta(1)
    rig.queue.run_ready()
    assert rig.emitted.offsets == [1, 4], "200 bytes came while the first was being made"


def test_only_images_at_the_end_of_a_batch_become_snapshots() -> None:
    rig = Rig(max_bytes=100)
    rig.log_delta(100, aligned=False)
    assert rig.queue.size == 0
    rig.log_delta(1)
    rig.queue.run_ready()
    assert rig.emitted.offsets == [2]


def test_loading_a_snapshot_resets_the_counts() -> None:
    rig = Rig(max_bytes=100)
    rig.log_delta(99)
    rig.generator.on_metadata_update(
        rig.made.change(topic(77)), rig.made.image, SnapshotManifest(provenance=rig.made.image.provenance)
    )
    rig.log_delta(99)
    rig.queue.run_ready()
    assert rig.emitted.offsets == []


def test_a_fault_is_reported_and_the_next_snapshot_is_tried() -> None:
    rig = Rig(max_bytes=100, fail=True)
    rig.log_delta(100)
    rig.queue.run_ready()
    rig.log_delta(100)
    rig.queue.run_ready()
    assert rig.emitted.offsets == [1, 2]
    assert rig.faults.handled[0][0] == "making snapshot 00000000000000000002-0000000001"
    assert len(rig.faults.handled) == 2


def test_a_disabled_or_closed_generator_makes_no_snapshot() -> None:
    rig = Rig(max_bytes=100)
    rig.generator.disabled_reason = "the disk is nearly full"
    rig.log_delta(100)
    assert rig.queue.size == 0
    rig.generator.disabled_reason = None
    rig.generator.on_controller_change(LeaderAndEpoch.UNKNOWN)
    rig.log_delta(1)
    rig.generator.close()
    assert rig.emitted.offsets == [2], "the one that waited was finished"
    rig.log_delta(100)
    assert rig.emitted.offsets == [2]
    assert rig.faults.handled == []


def test_the_generator_writes_snapshots_and_each_is_the_image_of_its_offset(lake: Path) -> None:
    clock, faults = ManualClock(TIME), Faults()
    log = MetadataLog.create(lake, "cluster", disk=DISK)
    feed = LakeFeed(log, clock, faults)
    loader = MetadataLoader(
        clock=clock, fault_handler=faults, high_watermark=lambda: feed.end_at_start, queue=EventQueue(clock, "loader")
    )
    metrics = SnapshotEmitterMetrics(clock.milliseconds())
    emitter = LakeSnapshotEmitter(lake, clock, metrics)
    snapshots = EventQueue(clock, "snapshots")
    generator = SnapshotGenerator(
        emitter.maybe_emit,
        clock,
        faults,
        policy=SnapshotPolicy(max_bytes=100),
        quorum=lambda: loader.quorum,
        queue=snapshots,
    )
    loader.install_publishers([generator])
    feed.start(loader)
    groups = [[metadata_version()], *([topic(number)] for number in range(20)), [begin(), topic(30)], [end()]]
    batches = log_of(1, *groups)

    for batch in batches:
        log.append([batch])
        clock.advance(100)
        loader.queue.run_ready()
        snapshots.run_ready()

    assert faults.handled == []
    kept = MetadataLog.open(lake).snapshots()
    assert len(kept) == metrics.generated > 2
    assert emitter.metrics.latest_generated_bytes > 300
    for snapshot in kept:
        image = snapshot_image(snapshot).image
        assert without_place(image) == without_place(reference_image(batches, snapshot.end_offset - 1))
        assert snapshot.end_offset - 1 in {batch.last_offset for batch in batches}

    registry = MetricsRegistry()
    metrics.register(registry, clock)
    clock.advance(50)
    assert registry.value("kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedAgeMs") >= 50
    assert registry.value("kafka.server:type=SnapshotEmitter,name=LatestSnapshotGeneratedBytes") > 300
    emitter.maybe_emit(snapshot_image(kept[-1]).image, QuorumState())
    assert metrics.generated == len(kept), "the lake has that one"


def test_the_generator_has_its_own_thread(lake: Path) -> None:
    log = MetadataLog.create(lake, "cluster", disk=DISK)
    batches = [*log_of(1, [metadata_version()]), data(2, topic(1))]
    log.append(batches)
    clock, faults = ManualClock(TIME), Faults()
    emit = LakeSnapshotEmitter(lake, clock).maybe_emit
    generator = SnapshotGenerator(emit, clock, faults, policy=SnapshotPolicy(max_bytes=1))
    image = reference_image(batches)
    manifest = LogDeltaManifest(provenance=image.provenance, base_offset=0, num_batches=3, num_bytes=9, num_records=3)
    generator.on_metadata_update(Cluster().change(), image, manifest)
    generator.close()
    assert faults.handled == []
    assert [snapshot.end_offset for snapshot in log.snapshots()] == [3]
