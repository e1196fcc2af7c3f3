"""The metadata loader: what is published when, whatever the log is cut into, and what its faults do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.image.provenance import MetadataProvenance
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.loader.manifest import LeaderAndEpoch, LoaderManifest, LogDeltaManifest, SnapshotManifest
from kraftlake.replay.loader.metadata_loader import MetadataLoader
from kraftlake.replay.loader.metadata_publisher import MetadataPublisher
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import (
    CorruptDataError,
    KraftlakeError,
    QueueFullError,
    RefusedReadError,
    ReplayError,
    UsageError,
)
from kraftlake.runtime.event_order import EventQueueClosedError
from kraftlake.runtime.event_queue import EventQueue
from tests.few_examples import few_examples
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import (
    TIME,
    UNDECODABLE,
    MadeLog,
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


class Recorder:
    """A publisher that keeps what it receives, and checks that each change continues the last one."""

    def __init__(self, name: str = "recorder", fail_at: Callable[[int], bool] = lambda offset: False) -> None:
        self.name = name
        self.images: list[MetadataImage] = []
        self.manifests: list[LoaderManifest] = []
        self.leaders: list[LeaderAndEpoch] = []
        self.closed = 0
        self._fail_at = fail_at

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        assert not self.closed
        before = self.images[-1] if self.images else MetadataImage.EMPTY
        assert delta.image == before
        assert delta.apply(new_image.provenance) == new_image
        assert manifest.provenance == new_image.provenance
        self.images.append(new_image)
        self.manifests.append(manifest)
        if self._fail_at(new_image.offset):
            raise RuntimeError(f"{self.name} fails at {new_image.offset}")

    def on_controller_change(self, leader_and_epoch: LeaderAndEpoch) -> None:
        self.leaders.append(leader_and_epoch)

    def close(self) -> None:
        self.closed += 1

    @property
    def offsets(self) -> list[int]:
        return [image.offset for image in self.images]


@attrs.define
class Faults:
    """A fault handler that remembers."""

    handled: list[tuple[str, BaseException | None]] = attrs.field(factory=list)

    def handle_fault(self, what: str, cause: BaseException | None = None) -> None:
        self.handled.append((what, cause))


class Rig:
    """A loader whose queue runs when the test says so, at a high watermark that it sets."""

    def __init__(self, high_watermark: int | None = 0, *, lenient: bool = False, limit: int | None = None) -> None:
        self.clock = ManualClock(TIME)
        self.faults = Faults()
        self.high_watermark = high_watermark
        self.loader = MetadataLoader(
            clock=self.clock,
            fault_handler=self.faults,
            high_watermark=lambda: self.high_watermark,
            queue=EventQueue(self.clock, "loader", limit=limit),
            lenient=lenient,
        )

    def install(self, *publishers: MetadataPublisher) -> None:
        done = self.loader.install_publishers(publishers)
        self.loader.queue.run_ready()
        done.result(timeout=0)

    def commit(self, *batches: RecordBatch) -> None:
        self.loader.handle_commit(batches)
        self.loader.queue.run_ready()


def cut(batches: Sequence[RecordBatch], places: Sequence[int]) -> list[Sequence[RecordBatch]]:
    edges = [0, *sorted({place % (len(batches) + 1) for place in places}), len(batches)]
    return [batches[low:high] for low, high in pairwise(edges) if low < high]


def in_one(publisher: Recorder, batches: Sequence[RecordBatch], places: Sequence[int], **options: bool) -> Rig:
    rig = Rig(**options)  # type: ignore[arg-type]
    rig.install(publisher)
    for part in cut(batches, places):
        rig.commit(*part)
    return rig


places = st.lists(st.integers(0, 60), max_size=8)


@few_examples
@given(metadata_logs(), places)
def test_every_way_of_cutting_a_log_into_commits_ends_in_the_same_image(
    batches: list[RecordBatch], places: list[int]
) -> None:
    publisher = Recorder()
    rig = in_one(publisher, batches, places)
    assert rig.faults.handled == []
    assert without_place(publisher.images[-1]) == without_place(reference_image(batches))
    for image in publisher.images:
        assert without_place(image) == without_place(reference_image(batches, image.offset)), "no half transaction"


@few_examples
@given(metadata_logs(), places, st.data())
def test_a_poison_record_stops_it_at_its_offset_and_what_came_before_is_published(
    batches: list[RecordBatch], places: list[int], draw: st.DataObject
) -> None:
    numbers = [number for number, batch in enumerate(batches) if not batch.control]
    number = draw.draw(st.sampled_from(numbers))
    place = draw.draw(st.integers(0, len(batches[number].values) - 1))
    values = list(batches[number].values)
    values[place] = UNDECODABLE
    poisoned = [*batches[:number], attrs.evolve(batches[number], values=tuple(values)), *batches[number + 1 :]]
    step_by_step, cut_up = Recorder(), Recorder()

    in_one(step_by_step, poisoned, range(len(batches)))
    rig = in_one(cut_up, poisoned, places)

    assert isinstance(rig.loader.stopped, CorruptDataError)
    assert f"offset {batches[number].base_offset + place} " in str(rig.loader.stopped)
    ((_, cause),) = rig.faults.handled
    assert isinstance(cause, CorruptDataError)
    assert cut_up.offsets[-1:] == step_by_step.offsets[-1:]
    assert cut_up.images[-1:] == step_by_step.images[-1:]
    if number > 0 and cut_up.images:
        reference = reference_image(poisoned[:number])
        assert cut_up.offsets[-1] <= batches[number].base_offset + place
        if cut_up.offsets[-1] < batches[number].base_offset:
            assert without_place(cut_up.images[-1]) == without_place(reference)


def test_a_record_that_contradicts_the_image_stops_it_too() -> None:
    rig, publisher = Rig(), Recorder()
    rig.install(publisher)
    rig.commit(*log_of(1, [metadata_version()], [topic(1)], [topic(2), partition(7)], [topic(3)]))

    assert isinstance(rig.loader.stopped, ReplayError)
    assert rig.loader.stopped.offset == 4
    assert publisher.offsets[-1] == 2
    assert set(publisher.images[-1].topics.topics_by_name()) == {"topic-1"}
    assert rig.faults.handled[0][0] == "Replaying the metadata log after offset 2"
    rig.commit(data(6, topic(4)))
    assert publisher.offsets[-1] == 2, "it has stopped"
    assert rig.loader.metrics.load_errors == 1


def test_two_topics_of_a_name_stop_it_before_the_second() -> None:
    rig, publisher = Rig(), Recorder()
    rig.install(publisher)
    rig.commit(*log_of(1, [metadata_version()], [topic(1)], [topic(2, "topic-1")]))
    assert isinstance(rig.loader.stopped, ReplayError)
    assert (publisher.offsets[-1], rig.loader.image.offset) == (2, 2)


def test_a_record_that_is_left_out_is_counted_once_whatever_comes_after_it() -> None:
    rig = Rig(lenient=True)
    rig.commit(leader_change(0, 1), data(1, metadata_version()), data(2, UNDECODABLE), no_op(9))
    assert "Offset 3 is missing" in str(rig.loader.stopped)
    assert [skip.offset for skip in rig.loader.skipped] == [2]


def test_a_lenient_loader_publishes_no_change_that_is_not_in_the_image() -> None:
    rig, publisher = Rig(lenient=True), Recorder()
    rig.install(publisher)
    for batch in log_of(1, [metadata_version()], [topic(1)], [topic(2, "topic-1"), topic(3)], [topic(4)]):
        rig.commit(batch)
    assert rig.faults.handled == []
    assert set(publisher.images[-1].topics.topics_by_name()) == {"topic-1", "topic-3", "topic-4"}
    assert [(skip.offset, skip.type) for skip in rig.loader.skipped] == [(3, "TOPIC_RECORD")]


def test_an_unexpected_error_stops_the_loader_before_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, publisher = Rig(), Recorder()
    rig.install(publisher)
    replay_value = MetadataDelta.replay_value

    def fail(delta: MetadataDelta, value: bytes) -> bool:
        if b"topic-3" in value:
            raise ZeroDivisionError("a bug")
        return replay_value(delta, value)

    monkeypatch.setattr(MetadataDelta, "replay_value", fail)
    rig.commit(*log_of(1, [metadata_version()], [topic(1)], [topic(2), topic(3)], [topic(4)]))
    assert str(rig.loader.stopped) == "ZeroDivisionError: a bug"
    assert set(publisher.images[-1].topics.topics_by_name()) == {"topic-1"}
    assert [type(cause) for _, cause in rig.faults.handled] == [ZeroDivisionError]


def test_a_gap_stops_it() -> None:
    rig = Rig()
    rig.commit(leader_change(0, 1), no_op(5))
    assert "Offset 1 is missing" in str(rig.loader.stopped)


def test_a_lenient_loader_leaves_such_records_out_and_says_so_in_each_manifest() -> None:
    rig, publisher = Rig(lenient=True), Recorder()
    rig.install(publisher)
    rig.commit(*log_of(1, [metadata_version()], [topic(1)]))
    rig.commit(data(3, partition(7), UNDECODABLE, topic(2)))
    rig.commit(no_op(6))

    assert rig.loader.stopped is None
    assert [(skip.offset, skip.type) for skip in rig.loader.skipped] == [(3, "PARTITION_RECORD"), (4, "UNDECODABLE")]
    assert [manifest.num_skipped for manifest in publisher.manifests] == [0, 2, 2]
    assert rig.loader.metrics.skipped_records == 2
    assert set(publisher.images[-1].topics.topics_by_name()) == {"topic-1", "topic-2"}


def test_nothing_is_published_before_the_high_watermark_is_reached() -> None:
    rig, publisher = Rig(high_watermark=None), Recorder()
    rig.install(publisher)
    batches = log_of(1, [metadata_version()], [topic(1)], [topic(2)], [topic(3)])
    rig.commit(*batches[:2])
    rig.high_watermark = 4
    rig.commit(batches[2])
    assert publisher.offsets == []
    rig.commit(batches[3])
    assert publisher.offsets == [3]
    assert isinstance(publisher.manifests[0], SnapshotManifest)
    rig.high_watermark = 99
    rig.commit(batches[4])
    assert publisher.offsets == [3, 4], "it has caught up once and for all"


def test_a_high_watermark_that_fails_for_a_while_only_delays_a_publishers_first_update() -> None:
    class Failing(Rig):
        @property
        def high_watermark(self) -> int | None:
            if self.fails:
                raise OSError("no answer")
            return 0

        @high_watermark.setter
        def high_watermark(self, value: int | None) -> None:
            self.fails = False

    rig, publisher = Failing(), Recorder()
    rig.commit(*log_of(1, [metadata_version()]))
    rig.fails = True
    rig.install(publisher)
    assert [what for what, _ in rig.faults.handled] == ["Initializing new publishers"]
    rig.fails = False
    rig.clock.advance(100)
    rig.loader.queue.run_ready()
    assert len(publisher.offsets) == 1


def test_who_waits_for_a_call_can_not_cancel_it() -> None:
    rig = Rig()
    installed = rig.loader.install_publishers([Recorder()])
    assert not installed.cancel()
    rig.loader.queue.run_ready()
    assert (installed.result(timeout=0), rig.faults.handled) == (None, [])


def test_nothing_is_published_before_a_record_that_is_no_control_record() -> None:
    rig, publisher = Rig(high_watermark=1), Recorder()
    rig.install(publisher)
    rig.commit(leader_change(0, 1))
    rig.clock.advance(1_000)
    rig.loader.queue.run_ready()
    assert publisher.offsets == []
    rig.commit(no_op(1))
    assert publisher.offsets == [1]


def test_an_open_transaction_is_published_with_its_end() -> None:
    rig, publisher = Rig(), Recorder()
    rig.install(publisher)
    rig.commit(*log_of(1, [metadata_version()], [topic(1), begin(), topic(2)], [topic(3)]))
    assert set(publisher.images[-1].topics.topics_by_name()) == {"topic-1"}
    assert not publisher.images[-1].provenance.batch_aligned
    rig.commit(data(6, end()))
    assert set(publisher.images[-1].topics.topics_by_name()) == {"topic-1", "topic-2", "topic-3"}
    assert publisher.images[-1].provenance.batch_aligned


def test_a_manifest_says_where_a_change_comes_from() -> None:
    rig, publisher = Rig(), Recorder()
    rig.install(publisher)
    rig.commit(leader_change(0, 4), data(1, metadata_version(), epoch=4))
    rig.commit(data(2, topic(1), partition(1), epoch=4), data(4, topic(2), epoch=4, time=TIME + 9))
    manifest = publisher.manifests[-1]
    assert isinstance(manifest, LogDeltaManifest)
    size = sum(len(value) for batch in (data(2, topic(1), partition(1)), data(4, topic(2))) for value in batch.values)
    assert (manifest.base_offset, manifest.num_batches, manifest.num_records) == (2, 2, 3)
    assert (manifest.num_bytes, manifest.leader_id) == (size, 3000)
    assert manifest.provenance == MetadataProvenance(offset=4, epoch=4, timestamp=TIME + 9, batch_aligned=True)


def test_elapsed_time_is_that_of_replaying() -> None:
    class Ticking(ManualClock):
        def nanoseconds(self) -> int:
            self.advance(1)
            return super().nanoseconds()

    clock = Ticking()
    loader = MetadataLoader(
        clock=clock, fault_handler=Faults(), high_watermark=lambda: 0, queue=EventQueue(clock, "loader")
    )
    publisher = Recorder()
    loader.install_publishers([publisher])
    for batch in log_of(1, [metadata_version()], [topic(1)]):
        loader.load([batch])
        loader.queue.run_ready()
    assert 0 < publisher.manifests[-1].elapsed_ns < 20_000_000
    assert loader.metrics.batch_processing_time_ns > publisher.manifests[-1].elapsed_ns


def test_a_publisher_that_fails_is_named_and_the_others_are_called() -> None:
    rig = Rig()
    first, broken, last = Recorder("first"), Recorder("broken", lambda offset: offset == 3), Recorder("last")
    rig.install(first, broken, last)
    for batch in log_of(1, [metadata_version()], [topic(1)], [topic(2)], [topic(3)]):
        rig.commit(batch)

    assert first.offsets == broken.offsets == last.offsets == [1, 2, 3, 4]
    ((what, cause),) = rig.faults.handled
    assert what == "Publisher broken, publishing the image at offset 3"
    assert str(cause) == "broken fails at 3"
    assert rig.loader.metrics.apply_errors == 1


def test_a_publisher_that_fails_when_it_is_new_is_left_out() -> None:
    rig, broken, whole = Rig(), Recorder("broken", lambda offset: True), Recorder("whole")
    rig.install(broken, whole)
    rig.commit(*log_of(1, [metadata_version()]))
    rig.commit(no_op(2))
    assert (broken.offsets, whole.offsets) == ([1], [1, 2])
    assert rig.faults.handled[0][0] == "Publisher broken, getting everything up to offset 1"


@few_examples
@given(metadata_logs(), st.integers(0, 60))
def test_a_publisher_that_is_added_late_gets_the_whole_image(batches: list[RecordBatch], after: int) -> None:
    rig, early, late = Rig(), Recorder("early"), Recorder("late")
    rig.install(early)
    for number, batch in enumerate(batches):
        if number == after % len(batches):
            rig.install(late)
        rig.commit(batch)
    rig.clock.advance(200)
    rig.loader.queue.run_ready()
    assert rig.faults.handled == []
    assert late.images[-1:] == early.images[-1:]
    assert late.leaders[-1] == early.leaders[-1]


def test_each_leader_is_published_once_and_to_new_publishers_at_once() -> None:
    rig, early, late = Rig(), Recorder("early"), Recorder("late")
    rig.install(early)
    rig.commit(*log_of(1, [metadata_version()], 2, [topic(1)]))
    rig.commit(leader_change(4, 3))
    rig.commit(no_op(5, epoch=3))
    rig.install(late)
    rig.loader.handle_leader_change(LeaderAndEpoch(leader_id=None, epoch=4))
    rig.loader.queue.run_ready()
    assert [leader.epoch for leader in early.leaders] == [2, 3, 4]
    assert [leader.epoch for leader in late.leaders] == [3, 4]
    assert rig.loader.metrics.current_controller_id == -1


def test_a_removed_publisher_is_closed_and_not_called_again() -> None:
    rig, publisher, other = Rig(), Recorder("gone"), Recorder("other")
    rig.install(publisher, other)
    rig.commit(*log_of(1, [metadata_version()]))
    done = rig.loader.remove_and_close_publisher(publisher)
    rig.commit(no_op(2))
    done.result(timeout=0)
    assert (publisher.offsets, publisher.closed, other.offsets) == ([1], 1, [1, 2])
    again = rig.loader.remove_and_close_publisher(publisher)
    rig.loader.queue.run_ready()
    assert isinstance(again.exception(timeout=0), UsageError)
    assert rig.faults.handled == []


def test_two_publishers_of_a_name_are_refused_together() -> None:
    rig = Rig()
    done = rig.loader.install_publishers([Recorder("other"), Recorder("one"), Recorder("one")])
    rig.loader.queue.run_ready()
    with pytest.raises(UsageError, match="'one' is installed already"):
        done.result(timeout=0)
    rig.install(Recorder("other"))


def test_closing_closes_every_publisher_and_refuses_what_comes_later() -> None:
    rig, ready, waiting = Rig(), Recorder("ready"), Recorder("waiting")
    rig.install(ready)
    rig.commit(*log_of(1, [metadata_version()]))
    rig.loader.install_publishers([waiting])
    rig.loader.close()
    assert (ready.closed, waiting.closed) == (1, 1)
    with pytest.raises(EventQueueClosedError):
        rig.loader.handle_commit([no_op(2)])


def test_more_commits_than_the_queue_takes_are_refused() -> None:
    rig = Rig(limit=1)
    rig.loader.handle_commit([leader_change(0, 1)])
    with pytest.raises(QueueFullError):
        rig.loader.handle_commit([no_op(1)])
    assert rig.faults.handled == []


@given(st.integers(1, 17), st.integers(0, 17))
def test_a_snapshot_is_published_as_the_change_from_the_image_before_it(known: int, gap: int) -> None:
    batches = small_log()
    at = [batch.last_offset for batch in batches if batch.last_offset >= 3 and batch.last_offset != 11]
    first = at[known % len(at)]
    snapshot_end = at[min(at.index(first) + gap % len(at), len(at) - 1)] + 1
    rig, publisher = Rig(), Recorder()
    rig.install(publisher)
    rig.commit(*(batch for batch in batches if batch.last_offset <= first))

    rig.loader.handle_load_snapshot(snapshot_of(reference_image(batches, snapshot_end - 1)))
    rig.commit(*(batch for batch in batches if batch.base_offset >= snapshot_end))

    assert rig.faults.handled == []
    assert without_place(publisher.images[-1]) == without_place(reference_image(batches))
    assert any(isinstance(manifest, SnapshotManifest) for manifest in publisher.manifests[1:])


@attrs.frozen
class Refused:
    """A snapshot, or a log, in a lake that does not give it but after two tries."""

    of: Any
    tries: list[int] = attrs.field(factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of, name)

    def batches(self, *offsets: int) -> Iterator[RecordBatch]:
        yield from itertools.islice(self.of.batches(*offsets), 3)
        self.tries.append(1)
        if len(self.tries) <= 2:
            raise RefusedReadError("the lake can't be read: the object store answers: 503 Slow Down.")
        yield from itertools.islice(self.of.batches(*offsets), 3, None)


def test_a_snapshot_and_a_start_that_the_lake_refuses_may_be_tried_again() -> None:
    batches = log_of(1, [metadata_version()], [UNDECODABLE], [topic(1)], [topic(2)])
    starting = Rig(lenient=True)
    reader = Refused(MadeLog(records=tuple(batches)))
    for _ in range(2):
        with pytest.raises(RefusedReadError):
            starting.loader.catch_up(reader)
    starting.loader.catch_up(reader)
    assert (starting.loader.stopped, starting.loader.next_offset) == (None, 5)
    assert [skipped.offset for skipped in starting.loader.skipped] == [2]

    rig, publisher = Rig(lenient=True), Recorder()
    rig.install(publisher)
    rig.commit(*batches[:3])
    known = snapshot_of(reference_image([*batches[:2], no_op(2), *batches[3:]]))
    skipping = data(1, UNDECODABLE, metadata_version(), epoch=1)
    snapshot = Refused(attrs.evolve(known, records=(known.records[0], skipping, *known.records[2:])))
    for _ in range(2):
        with pytest.raises(RefusedReadError):
            rig.loader.load_snapshot(snapshot)
    assert (rig.loader.stopped, rig.faults.handled, publisher.offsets) == (None, [], [2])
    assert rig.loader.metrics.handle_load_snapshot_count == 0
    rig.loader.load_snapshot(snapshot)
    assert (rig.loader.stopped, publisher.offsets) == (None, [2, 4])
    assert [skipped.offset for skipped in rig.loader.skipped] == [2, 1]


class Asking(Recorder):
    """A publisher that asks for the offset that all publishers have had."""

    def __init__(self, loader: MetadataLoader) -> None:
        super().__init__("asking")
        self._loader = loader
        self.answers: list[int] = []

    def on_metadata_update(self, delta: MetadataDelta, new_image: MetadataImage, manifest: LoaderManifest) -> None:
        super().on_metadata_update(delta, new_image, manifest)
        self.answers.append(self._loader.applied_offset)


def test_an_offset_is_applied_when_the_publishers_have_had_its_image() -> None:
    batches = log_of(1, [metadata_version()], [topic(1)], [topic(2)])
    rig = Rig()
    assert rig.loader.applied_offset == -1
    asking = Asking(rig.loader)
    rig.install(asking)
    rig.commit(*batches[:3])
    rig.commit(*batches[3:])
    assert (asking.offsets, asking.answers, rig.loader.applied_offset) == ([2, 3], [2, 2], 3)


@pytest.mark.parametrize("early", [False, True])
def test_a_loader_without_publishers_has_applied_what_it_has_caught_up_with(early: bool) -> None:
    batches = log_of(1, [metadata_version()], [topic(1)])
    rig = Rig()
    asking = Asking(rig.loader)
    if early:
        rig.loader.install_publishers([asking])
        rig.loader.queue.run_ready()
    rig.loader.catch_up(MadeLog(records=tuple(batches)))
    assert rig.loader.applied_offset == (-1 if early else 2)
    rig.loader.queue.run_ready()
    assert (rig.loader.applied_offset, asking.answers) == (2, [-1] if early else [])


def test_a_broken_snapshot_stops_it() -> None:
    rig = Rig()
    snapshot = snapshot_of(reference_image(log_of(1, [metadata_version()])))
    values = (UNDECODABLE,)
    batch = next(batch for batch in snapshot.records if not batch.control)
    broken = attrs.evolve(snapshot, records=(attrs.evolve(batch, values=values, timestamps=(TIME,)),))
    rig.loader.handle_load_snapshot(broken)
    rig.loader.queue.run_ready()
    assert isinstance(rig.loader.stopped, KraftlakeError)
    assert snapshot.name in str(rig.loader.stopped)
