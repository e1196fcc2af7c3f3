"""A lake's log, fed to a loader: what is there, what comes, and what is gone by the time it is asked for."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import MappingProxyType
from typing import Any

import attrs
import pytest
from obstore.store import MemoryStore

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.log_facts import LOG_TABLE
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.storage import object_path
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replay.reading import chunks
from kraftlake.runtime.clock import Clock, ManualClock, SystemClock
from kraftlake.runtime.errors import CorruptDataError
from kraftlake.runtime.event_queue import EventQueue
from tests.metadata_log.log_batches import UnsyncedDisk
from tests.replay.loader.test_metadata_loader import Faults, Recorder
from tests.replay.made_logs import (
    TIME,
    UNDECODABLE,
    begin,
    data,
    end,
    leader_change,
    log_of,
    metadata_version,
    no_op,
    partition,
    reference_image,
    small_log,
    snapshot_of,
    topic,
    without_place,
)

DISK = UnsyncedDisk()
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"


@attrs.define
class Fed:
    """A loader that reads a lake whenever the test turns the clock."""

    clock: ManualClock
    faults: Faults
    feed: LakeFeed
    loader: MetadataLoader
    publisher: Recorder

    def run(self) -> None:
        self.clock.advance(100)
        self.loader.queue.run_ready()


def fed(log: MetadataLog, *, lenient: bool = False, poll: float = 0.001, idle_poll: float | None = None) -> Fed:
    clock, faults, publisher = ManualClock(TIME), Faults(), Recorder()
    feed = LakeFeed(log, clock, faults, poll=poll, idle_poll=idle_poll)
    loader = MetadataLoader(
        clock=clock,
        fault_handler=faults,
        high_watermark=lambda: feed.end_at_start,
        queue=EventQueue(clock, "loader"),
        lenient=lenient,
    )
    loader.install_publishers([publisher])
    feed.start(loader)
    loader.queue.run_ready()
    return Fed(clock, faults, feed, loader, publisher)


def lake_of(path: Path, *batches: RecordBatch) -> MetadataLog:
    log = MetadataLog.create(path, "cluster", disk=DISK)
    for batch in batches:
        log.append([batch])
    return log


def keep_snapshot(log: MetadataLog, image: MetadataImage) -> None:
    made = snapshot_of(image)
    log.add_snapshot(
        SnapshotFacts(
            end_offset=made.end_offset, epoch=made.epoch, last_contained_log_timestamp=made.last_contained_log_timestamp
        ),
        made.records,
    )


def test_what_is_there_is_published_once_and_then_each_commit(lake: Path) -> None:
    batches = small_log()
    log = lake_of(lake, *batches[:4])
    run = fed(log)
    assert run.publisher.offsets == [batches[3].last_offset]
    assert isinstance(run.publisher.manifests[0], SnapshotManifest)
    for batch in batches[4:]:
        log.append([batch])
        run.run()
    assert run.faults.handled == []
    assert run.publisher.images[-1] == reference_image(batches)
    assert run.loader.next_offset == log.end_offset


def test_what_the_tail_has_by_then_is_one_change(lake: Path) -> None:
    batches = log_of(1, [metadata_version()], [topic(1)], [topic(2)], [topic(3)])
    log = lake_of(lake, *batches[:2])
    run = fed(log)
    for batch in batches[2:]:
        log.append([batch])
    run.run()
    assert run.publisher.offsets == [1, 4]


def test_a_new_publisher_gets_the_image_of_the_compiled_replay(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "BULK_FROM", 1)
    batches = log_of(1, [metadata_version()], *([topic(n), partition(n)] for n in range(1, 9)), [topic(20)])
    run = fed(lake_of(lake, *batches))
    assert run.faults.handled == []
    assert run.publisher.images[-1] == reference_image(batches)


def test_a_transaction_that_is_open_at_the_start_is_published_with_its_end(lake: Path) -> None:
    log = lake_of(lake, *log_of(1, [metadata_version()], [begin(), topic(1)]))
    run = fed(log)
    assert [len(image.topics.topics_by_name()) for image in run.publisher.images] == [0]
    log.append([data(4, topic(2), end()), data(6, UNDECODABLE)])
    run.run()
    assert set(run.publisher.images[-1].topics.topics_by_name()) == {"topic-1", "topic-2"}
    assert "offset 6 " in str(run.loader.stopped)


def test_an_empty_lake_publishes_when_its_first_record_comes(lake: Path) -> None:
    log = lake_of(lake)
    run = fed(log)
    batches = log_of(1, [metadata_version()])
    log.append(batches[:1])
    run.run()
    assert run.publisher.offsets == []
    log.append(batches[1:])
    run.run()
    assert run.publisher.offsets == [1]


def test_a_lake_whose_log_starts_late_starts_from_its_snapshot(lake: Path) -> None:
    batches = small_log()
    log = MetadataLog.create(lake, "cluster", start_offset=8, disk=DISK)
    keep_snapshot(log, reference_image(batches, 7))
    log.append([batch for batch in batches if batch.base_offset >= 8])
    run = fed(log)
    assert run.faults.handled == []
    assert without_place(run.publisher.images[-1]) == without_place(reference_image(batches))
    assert run.loader.metrics.handle_load_snapshot_count == 1


def trim(lake: Path, before: int) -> None:
    """Delete what is before an offset, and the commits and files that only readers of long ago need."""
    policy = UpkeepPolicy(checkpoint_after=1, keep_commits=1, compact_from=100, orphan_age_ms=0, exclusive=True)
    upkeep = Upkeep(lake, policy, disk=DISK)
    upkeep.trim(before, stream_lag_ms=0)
    upkeep.run(force_checkpoint=True)
    upkeep.vacuum()


def test_a_loader_that_the_log_was_trimmed_past_loads_the_newest_snapshot(lake: Path) -> None:
    batches = small_log()
    log = lake_of(lake, *batches[:4])
    run = fed(log)
    for batch in batches[4:]:
        log.append([batch])
    keep_snapshot(log, reference_image(batches, 14))
    trim(lake, 14)

    for _ in range(300):
        run.run()

    assert run.faults.handled == []
    assert without_place(run.publisher.images[-1]) == without_place(reference_image(batches))
    assert [type(manifest) for manifest in run.publisher.manifests].count(SnapshotManifest) == 2


def test_who_starts_behind_a_snapshot_knows_who_leads(lake: Path) -> None:
    batches = log_of(1, [metadata_version()], 4, [topic(1)], [topic(2)], [topic(3)])
    log = lake_of(lake, *batches)
    keep_snapshot(log, reference_image(batches, 4))
    run = fed(log)
    assert run.loader.metrics.handle_load_snapshot_count == 1
    assert run.loader.leader == LeaderAndEpoch(leader_id=3000, epoch=4)
    assert run.publisher.leaders == [run.loader.leader]


@pytest.mark.parametrize(("trimmed_to", "leader_id"), [(3, 3001), (5, None)])
def test_a_snapshot_of_a_later_epoch_is_not_that_of_the_leader_before(
    lake: Path, trimmed_to: int, leader_id: int | None
) -> None:
    batches = [
        *log_of(1, [metadata_version()], [topic(1)]), leader_change(3, 2, 3001), data(4, topic(2), epoch=2),
        data(5, topic(3), epoch=2), no_op(6, epoch=2),
    ]  # fmt: skip
    log = lake_of(lake, *batches[:2])
    run = fed(log)
    for batch in batches[2:]:
        log.append([batch])
    keep_snapshot(log, reference_image(batches, 5))
    trim(lake, trimmed_to)

    for _ in range(300):
        run.run()

    assert run.faults.handled == []
    assert run.loader.next_offset == 7
    assert run.publisher.leaders == [
        LeaderAndEpoch(leader_id=3000, epoch=1),
        LeaderAndEpoch(leader_id=leader_id, epoch=2),
    ]


def test_a_poison_record_in_the_tail_or_at_the_start_stops_it(lake: Path) -> None:
    log = lake_of(lake, *log_of(1, [metadata_version()], [topic(1)]))
    run = fed(log)
    log.append([data(3, topic(2), UNDECODABLE)])
    run.run()
    assert isinstance(run.loader.stopped, CorruptDataError)
    assert "offset 4 " in str(run.loader.stopped)
    assert run.publisher.offsets == [2]
    run.run()
    assert run.loader.queue.size == 0, "it reads no more"

    again = fed(log)
    assert "offset 4 " in str(again.loader.stopped)
    assert again.publisher.offsets == []

    lenient = fed(log, lenient=True)
    assert lenient.publisher.offsets == [4]
    assert lenient.publisher.manifests[-1].num_skipped == 1


def test_a_lake_that_can_not_be_read_stops_the_feed_and_reaches_the_fault_handler(lake: Path) -> None:
    log = lake_of(lake, *log_of(1, [metadata_version()]))
    run = fed(log)
    log.append([no_op(2)])
    newest = max((lake / "log").glob("*.parquet"))
    newest.write_bytes(b"no parquet")
    run.run()
    assert run.feed.stopped is not None
    assert [what for what, _ in run.faults.handled] == [f"Reading the log of {lake}"]


def test_a_read_that_the_disk_refuses_is_tried_again(lake: Path) -> None:
    log = lake_of(lake, *log_of(1, [metadata_version()]))
    run = fed(log)
    following = commit_path(lake / LOG_TABLE, log.version + 1)
    following.mkdir()
    run.run()
    following.rmdir()
    log.append([no_op(2)])
    for _ in range(3):
        run.run()
    assert (run.feed.stopped, run.faults.handled) == (None, [])
    assert run.loader.image.offset == 2


def test_a_lake_that_was_replaced_stops_the_feed(lake: Path) -> None:
    log = lake_of(lake, *small_log())
    run = fed(log, poll=0.1)
    lake.rename(lake.with_name("moved"))
    lake_of(lake, *small_log()[:3])
    for _ in range(5):
        run.run()
    assert f"{lake / LOG_TABLE} is no longer the table that was read there up to version" in str(run.feed.stopped)
    assert [what for what, _ in run.faults.handled] == [f"Reading the log of {lake}"]


class Requests:
    """An object store in memory, one request of which is refused: the one before which `grants` others are answered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answered = 0
        self.grants: int | None = None
        self._passed = object_path._requests
        monkeypatch.setattr(ObjectPath, "store", property(lambda _: self.store))
        monkeypatch.setattr(object_path, "_requests", self._request)

    def renew(self, grants: int | None, objects: Mapping[str, bytes] = MappingProxyType({})) -> None:
        """A new store, with these objects alone."""
        self.store = MemoryStore()
        for path, content in objects.items():
            self.store.put(path, content)
        self.answered, self.grants = 0, grants

    def objects(self) -> dict[str, bytes]:
        """All objects of the store."""
        paths = [entry["path"] for chunk in self.store.list() for entry in chunk]
        return {path: bytes(self.store.get(path).bytes()) for path in paths}

    @contextmanager
    def _request(self, path: ObjectPath) -> Iterator[Any]:
        if self.grants is not None:
            if self.answered == self.grants:
                self.grants = None
                raise OSError(5, "the object store answers: 503 Slow Down", str(path))
            self.answered += 1
        with self._passed(path) as module:
            yield module

    @contextmanager
    def all_answered(self) -> Iterator[None]:
        grants, self.grants = self.grants, None
        yield
        self.grants = grants


LAKE = "s3://bucket/lake"
POLICY = UpkeepPolicy(checkpoint_after=1, keep_commits=1, compact_from=100, orphan_age_ms=0, exclusive=True)


def batches_to_follow() -> list[RecordBatch]:
    batches = small_log()
    values = [random.Random(seed).randbytes(2_000).hex() for seed in range(50)]
    long = [r.ConfigRecord(resource_type=4, resource_name="1", name=value[:9], value=value) for value in values]
    batches.append(data(batches[-1].last_offset + 1, *long, epoch=3))
    batches.append(no_op(batches[-1].last_offset + 1, epoch=3))
    return batches


def make_followed(batches: list[RecordBatch]) -> None:
    """A lake with a snapshot, a checkpoint, and commits after both."""
    log = MetadataLog.create(LAKE, "cluster")
    log.append(batches[:3])
    keep_snapshot(log, reference_image(batches, batches[2].last_offset))
    log.append(batches[3:5])
    Upkeep(log.path, POLICY).run(force_checkpoint=True)
    log.append(batches[5:7])


def check_followed(requests: Requests, batches: list[RecordBatch], at_end: MetadataImage) -> None:
    """Read the lake from its snapshot and checkpoint, follow it, be trimmed past, and load a snapshot of two parts."""
    with requests.all_answered():
        log = MetadataLog.open(LAKE)
        upkeep = Upkeep(log.path, POLICY)
    run = fed(log, poll=0.1)
    run.run()
    with requests.all_answered():
        log.append(batches[7:-2])
    run.run()
    with requests.all_answered():
        log.append(batches[-2:-1])
    run.run()
    with requests.all_answered():
        log.append(batches[-1:])
        keep_snapshot(log, at_end)
        upkeep.trim(log.end_offset - 1, stream_lag_ms=0)
        upkeep.run(force_checkpoint=True)
        upkeep.vacuum()
    for _ in range(8):
        run.run()
    assert (run.faults.handled, run.feed.stopped, run.loader.stopped) == ([], None, None)
    assert run.publisher.images[-1] == at_end


def test_any_one_request_that_an_object_store_refuses_costs_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    requests, batches = Requests(monkeypatch), batches_to_follow()
    at_end = reference_image(batches)
    requests.renew(None)
    make_followed(batches)
    made = requests.objects()
    requests.renew(10_000, made)
    check_followed(requests, batches, at_end)
    total = requests.answered
    assert total > 50
    for grants in range(0, total, 1 if LONG else 7):
        requests.renew(grants, made)
        check_followed(requests, batches, at_end)
        assert requests.grants is None, "one was refused"


def test_a_lake_is_looked_at_soon_after_a_change_and_rarely_while_nothing_changes(lake: Path) -> None:
    log = lake_of(lake, *log_of(1, [metadata_version()]))
    made = fed(log, poll=0.002, idle_poll=0.02)
    made.run()

    def seen_after(milliseconds: float) -> bool:
        made.clock.advance(milliseconds)
        made.loader.queue.run_ready()
        return made.loader.next_offset == log.end_offset

    log.append([data(2, topic(2))])
    assert not seen_after(19)
    assert seen_after(1)
    log.append([data(3, topic(3))])
    assert not seen_after(1)
    assert seen_after(1)
    assert seen_after(40)
    log.append([data(4, topic(4))])
    assert not seen_after(9)
    assert seen_after(1)


class Passed(Recorder):
    """Hands the offsets of what it receives to another thread."""

    def __init__(self) -> None:
        super().__init__()
        self.passed: SimpleQueue[int] = SimpleQueue()

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        super().on_metadata_update(delta, new_image, manifest)
        self.passed.put(new_image.offset)


def test_a_loader_with_its_own_thread_follows_a_lake_by_itself(lake: Path) -> None:
    clock: Clock = SystemClock()
    faults, publisher = Faults(), Passed()
    log = lake_of(lake, *log_of(1, [metadata_version()]))
    feed = LakeFeed(log, clock, faults)
    loader = MetadataLoader(clock=clock, fault_handler=faults, high_watermark=lambda: feed.end_at_start)
    loader.install_publishers([publisher]).result(timeout=30)
    feed.start(loader)
    assert publisher.passed.get(timeout=30) == 1
    for offset in range(2, 12):
        log.append([data(offset, topic(offset))])
        assert publisher.passed.get(timeout=30) == offset
    loader.close()
    assert (publisher.closed, faults.handled) == (1, [])
