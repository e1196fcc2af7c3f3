from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.api import open_source
from kraftlake.kafka_files.faults import BrokenFileError
from kraftlake.kafka_files.file_names import segment_name
from kraftlake.kafka_files.follow import DirectoryFollower, TruncatedLogError
from kraftlake.kafka_files.writer import write_checkpoint
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.follow_log import FollowStep, LogFollower
from kraftlake.replay.imports.import_log import import_source
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.runtime.errors import CorruptDataError, ImportConflictError, NotASourceError, OffsetError, UsageError
from tests.few_examples import few_examples
from tests.metadata_log.delta_protocol import check_commits
from tests.replay.made_logs import TIME, leader_change, no_op, small_log, topic


class LiveDirectory:
    """A directory as a node writes it: appended to, rolled, truncated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.base = 0
        self.batches: list[RecordBatch] = []

    @property
    def segment(self) -> Path:
        return self.path / segment_name(self.base)

    def append(self, *batches: RecordBatch) -> None:
        with self.segment.open("ab") as file:
            for batch in batches:
                file.write(encode_batch(batch))
        self.batches += batches

    def roll(self) -> None:
        self.base = self.end

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def truncate(self, offset: int) -> None:
        gone = [batch for batch in self.batches if batch.base_offset >= offset]
        self.batches = [batch for batch in self.batches if batch.base_offset < offset]
        size = self.segment.stat().st_size - sum(len(encode_batch(batch)) for batch in gone)
        with self.segment.open("r+b") as file:
            file.truncate(size)

    def snapshot(self, end_offset: int, epoch: int) -> None:
        messages = [ApiMessageAndVersion(topic(number), 0) for number in range(3)]
        write_checkpoint(
            self.path / f"{end_offset:020d}-{epoch:010d}.checkpoint",
            messages,
            epoch=epoch,
            timestamp=TIME,
        )


@pytest.fixture
def live(tmp_path: Path) -> LiveDirectory:
    directory = LiveDirectory(tmp_path / "__cluster_metadata-0")
    directory.append(*small_log())
    return directory


def lake_of(live: LiveDirectory) -> Path:
    return live.path.parent / "lake"


def rewritten(live: LiveDirectory, cut: int, records: int) -> None:
    """The tail from an offset on is another leader's."""
    live.truncate(cut)
    live.append(leader_change(cut, 4))
    more(live, records, epoch=4)


def following(live: LiveDirectory, **options: Any) -> LogFollower:
    """A follower that has taken what there is."""
    follower = LogFollower(live.path, lake_of(live), **options)
    follower.step()
    return follower


def in_lake(live: LiveDirectory) -> list[RecordBatch]:
    return list(MetadataLog.open(lake_of(live)).batches())


def more(live: LiveDirectory, count: int, *, epoch: int = 3) -> None:
    for _ in range(count):
        live.append(no_op(live.end, epoch=epoch))


def test_only_what_is_known_to_be_committed_is_taken(live: LiveDirectory) -> None:
    follower = LogFollower(live.path, lake_of(live))
    first = follower.step()
    assert (first.from_offset, first.to_offset, first.seen_to) == (0, 8, live.end)
    assert in_lake(live) == [batch for batch in live.batches if batch.last_offset < 9]
    assert not follower.step().is_news
    more(live, 3)
    step = follower.step()
    leader = next(batch.base_offset for batch in live.batches if batch.control and batch.epoch == 3)
    assert (step.from_offset, step.to_offset) == (9, leader - 1)
    assert (step.end_offset, step.committed_to, step.seen_to) == (leader, leader, live.end)
    live.snapshot(live.end, 3)
    step = follower.step()
    assert (step.to_offset, step.snapshots, step.committed_to) == (live.end - 1, 1, live.end)
    assert in_lake(live) == live.batches
    assert not follower.step().is_news
    assert [kept.end_offset for kept in open_source(lake_of(live)).snapshots] == [live.end]
    assert check_commits(lake_of(live) / "log") == MetadataLog.open(lake_of(live)).version + 1
    assert check_commits(lake_of(live) / "snapshots") == 2


def kept(live: LiveDirectory) -> list[int]:
    """The ends of the snapshots in the lake."""
    return [snapshot.end_offset for snapshot in MetadataLog.open(lake_of(live)).snapshots()]


@pytest.mark.parametrize("options", [{}, {"include_uncommitted": True}], ids=["committed", "all"])
def test_a_snapshot_that_goes_further_than_the_log_waits_for_it(live: LiveDirectory, options: dict[str, Any]) -> None:
    follower = following(live, **options)
    live.snapshot(live.end + 2, 3)
    for _ in range(2):
        assert follower.step().snapshots == 0
        assert kept(live) == []
        more(live, 1)
    assert (follower.step().snapshots, kept(live)) == (1, [live.end])


def test_a_snapshot_of_a_later_epoch_behind_the_log_commits_nothing_of_it(live: LiveDirectory) -> None:
    """A node that was cut off fetches a snapshot before it drops a log whose tail the quorum never committed."""
    follower = following(live)
    more(live, 4)
    known = follower.step().end_offset
    assert known < live.end
    live.snapshot(live.end + 5, 4)
    for looks in (follower, follower, LogFollower(live.path, lake_of(live))):
        step = looks.step()
        assert (step.end_offset, step.committed_to) == (known, known)
    everything = LogFollower(live.path, lake_of(live), include_uncommitted=True)
    for _ in range(2):
        assert everything.step().committed_to == known
        more(live, 1)
    new = lake_of(live).with_name("new")
    assert LogFollower(live.path, new).step().end_offset == known
    import_source(live.path, new)
    log = MetadataLog.open(new)
    assert (log.end_offset, log.committed_to) == (live.end, known)


def test_a_snapshot_that_ends_inside_of_a_batch_waits_for_all_of_it(live: LiveDirectory) -> None:
    follower = following(live)
    batch = next(b for b in live.batches if b.record_count > 1 and b.base_offset >= 9)
    live.snapshot(batch.last_offset, 2)
    step = follower.step()
    assert (step.snapshots, step.end_offset, kept(live)) == (0, batch.base_offset, [])
    live.snapshot(live.end, 3)
    assert (follower.step().snapshots, kept(live)) == (2, [batch.last_offset, live.end])


def test_batches_longer_than_a_read_are_passed_when_the_position_is_found_again(live: LiveDirectory) -> None:
    topics = [ApiMessageAndVersion(topic(number, "x" * 200), 0) for number in range(6_000)]
    live.append(RecordBatch.of(live.end, 3, TIME, topics))
    assert len(encode_batch(live.batches[-1])) > 1 << 20
    follower = following(live, include_uncommitted=True)
    for _ in range(2):
        more(live, 1)
        assert follower.step().records == 1
        follower = LogFollower(live.path, lake_of(live), include_uncommitted=True)
    assert in_lake(live) == live.batches


def test_a_snapshot_of_an_image_that_the_lake_has_by_itself_is_left_out(live: LiveDirectory) -> None:
    follower = following(live, include_uncommitted=True)
    log = MetadataLog.open(lake_of(live))
    assert keep_snapshot(log, open_source(lake_of(live)).image())
    live.snapshot(live.end, 3)
    more(live, 1)
    assert (follower.step().snapshots, follower.step().snapshots) == (0, 0)
    assert kept(live) == [live.end - 1]


def test_a_damaged_end_that_a_segment_follows_is_an_error(live: LiveDirectory) -> None:
    follower = DirectoryFollower(live.path, 0)
    assert list(follower.poll()) == live.batches
    first, end = live.segment, live.end
    live.append(no_op(end))
    live.roll()
    live.append(no_op(live.end))
    spoilt = bytearray(first.read_bytes())
    spoilt[-1] ^= 1
    first.write_bytes(spoilt)
    with pytest.raises(BrokenFileError, match=f"offsets {end} to {end} are missing between this segment and the next"):
        list(follower.poll())


def test_with_the_uncommitted_everything_whole_is_taken_at_once(live: LiveDirectory) -> None:
    follower = LogFollower(live.path, lake_of(live), include_uncommitted=True)
    assert follower.step().to_offset == live.end - 1
    for _ in range(3):
        more(live, 2)
        assert follower.step().records == 2
    assert in_lake(live) == live.batches
    assert MetadataLog.open(lake_of(live)).committed_to < live.end


def test_a_batch_that_is_being_written_is_left_for_the_next_time(live: LiveDirectory) -> None:
    follower = following(live, include_uncommitted=True)
    batch = no_op(live.end, epoch=3)
    data = encode_batch(batch)
    for cut in (1, 30, 61, len(data) - 1):
        with live.segment.open("ab") as file:
            file.write(data[:cut])
        assert not follower.step().is_news
        with live.segment.open("r+b") as file:
            file.truncate(live.segment.stat().st_size - cut)
    live.append(batch)
    assert follower.step().records == 1


def test_segments_may_roll_and_old_ones_go(live: LiveDirectory) -> None:
    follower = following(live, include_uncommitted=True)
    for _ in range(4):
        more(live, 2)
        old = live.segment
        live.roll()
        more(live, 2)
        assert follower.step().records == 4
        old.rename(old.with_name(old.name + ".deleted"))
        assert not follower.step().is_news
    assert in_lake(live) == live.batches
    again = LogFollower(live.path, lake_of(live), include_uncommitted=True)
    assert not again.step().is_news
    more(live, 1)
    assert again.step().records == 1
    check_commits(lake_of(live) / "log")


def test_a_segment_may_go_while_following_begins(live: LiveDirectory) -> None:
    LogFollower(live.path, lake_of(live), include_uncommitted=True).step()
    old = live.segment
    live.roll()
    more(live, 2)

    def committed() -> Quorum:
        old.unlink(missing_ok=True)  # it has been read once, and is to be compared with the lake
        return Quorum(3, live.end)

    step = LogFollower(live.path, lake_of(live), quorum=committed).step()
    assert (step.records, step.end_offset) == (2, live.end)
    assert in_lake(live) == live.batches


def test_what_was_deleted_before_it_was_read_is_named(live: LiveDirectory) -> None:
    follower = following(live, include_uncommitted=True)
    end = live.end
    more(live, 2)
    old = live.segment
    live.roll()
    more(live, 2)
    old.unlink()
    with pytest.raises(OffsetError, match=f"offsets {end} to {end + 1} were deleted"):
        follower.step()


def test_a_truncated_tail_is_reported_and_a_rewritten_one_ends_the_following(live: LiveDirectory) -> None:
    follower = following(live, include_uncommitted=True)
    more(live, 4)
    follower.step()
    cut = live.end - 2
    kept = live.batches[-2:]
    live.truncate(cut)
    step = follower.step()
    assert step.truncated is not None
    assert "its tail was truncated" in step.truncated
    live.append(*kept)
    assert follower.step().truncated is None, "the same records came back"
    live.truncate(cut)
    follower.step()
    live.append(leader_change(cut, 4))
    with pytest.raises(ImportConflictError, match=rf"at offset {cut} \(epoch 4 in the source, epoch 3 in the lake\)"):
        follower.step()


def test_a_tail_that_was_rewritten_between_two_looks_is_found_too(live: LiveDirectory) -> None:
    follower = following(live, include_uncommitted=True)
    more(live, 4)
    follower.step()
    cut = live.end - 3
    rewritten(live, cut, 6)
    with pytest.raises(ImportConflictError, match=f"at offset {cut} .*the lake alone has .* nothing in it shows that"):
        follower.step()


def test_a_truncation_above_what_was_taken_costs_a_committed_lake_nothing(live: LiveDirectory) -> None:
    follower = following(live)
    more(live, 4)
    follower.step()
    cut = live.end - 3
    rewritten(live, cut, 6)
    follower.step()
    step = follower.step()
    assert (step.end_offset, step.committed_to) == (cut, cut)
    assert in_lake(live) == [batch for batch in live.batches if batch.last_offset < cut]


@attrs.frozen
class Quorum:
    leader_epoch: int
    high_watermark: int


def test_with_a_quorum_all_that_it_has_committed_is_taken_at_once(live: LiveDirectory) -> None:
    at = Quorum(3, live.end)
    follower = LogFollower(live.path, lake_of(live), quorum=lambda: at)
    first = follower.step()
    assert (first.to_offset, first.committed_to) == (live.end - 1, live.end)
    assert in_lake(live) == live.batches
    more(live, 4)
    step = follower.step()
    assert (step.records, step.seen_to) == (0, live.end)
    at = Quorum(3, live.end - 1)
    step = follower.step()
    assert (step.records, step.committed_to) == (3, live.end - 1)
    at = Quorum(3, live.end + 100)
    assert follower.step().committed_to == live.end
    again = LogFollower(live.path, lake_of(live), quorum=lambda: at)
    assert not again.step().is_news
    assert MetadataLog.open(lake_of(live)).committed_to == live.end
    check_commits(lake_of(live) / "log")


def test_the_tail_of_a_node_that_was_cut_off_is_not_what_the_quorum_committed(live: LiveDirectory) -> None:
    at = Quorum(3, live.end)
    follower = following(live, quorum=lambda: at)
    cut = live.end
    more(live, 5)
    at = Quorum(4, cut + 4)  # a new leader committed others at these offsets
    for _ in range(2):
        assert follower.step().end_offset == cut
    assert LogFollower(live.path, lake_of(live), quorum=lambda: at).step().end_offset == cut
    rewritten(live, cut, 3)
    follower.step()
    follower.step()
    assert in_lake(live) == live.batches


def test_with_a_quorum_without_a_high_watermark_the_log_alone_proves_what_is_committed(live: LiveDirectory) -> None:
    follower = LogFollower(live.path, lake_of(live), quorum=lambda: Quorum(3, -1))
    assert follower.step().end_offset == 9
    assert not follower.step().is_news
    with pytest.raises(UsageError, match="not both"):
        LogFollower(live.path, lake_of(live), include_uncommitted=True, quorum=lambda: Quorum(3, 1))


def test_nothing_is_made_before_anything_is_known_to_be_committed(tmp_path: Path) -> None:
    live = LiveDirectory(tmp_path / "__cluster_metadata-0")
    live.append(leader_change(0, 1))
    follower = LogFollower(live.path, lake_of(live))
    assert follower.step().seen_to == 1
    assert not lake_of(live).exists()
    more(live, 1, epoch=1)
    live.snapshot(2, 1)
    assert follower.step().end_offset == 2


def test_only_a_directory_is_followed(tmp_path: Path, live: LiveDirectory) -> None:
    with pytest.raises(UsageError, match="only the directory of a node grows"):
        LogFollower(live.segment, tmp_path / "lake").step()
    with pytest.raises(NotASourceError):
        LogFollower(tmp_path / "nowhere", tmp_path / "lake").step()


def test_damage_that_bytes_follow_is_no_batch_that_is_being_written(live: LiveDirectory) -> None:
    follower = following(live, include_uncommitted=True)
    with live.segment.open("ab") as file:
        file.write(b"garbage" * 20)
    end = live.end
    live.append(no_op(end, epoch=3))
    with pytest.raises(CorruptDataError, match=f"offset {end}"):
        follower.step()


def test_a_follower_runs_until_it_is_stopped_and_reports_new_records(live: LiveDirectory) -> None:
    steps: list[FollowStep] = []
    stop = threading.Event()

    def on_step(step: FollowStep) -> None:
        steps.append(step)
        if len(steps) == 3:
            stop.set()
        else:
            more(live, 1)

    LogFollower(live.path, lake_of(live), include_uncommitted=True).run(on_step, poll=0.001, stop=stop)
    assert [step.records for step in steps[1:]] == [1, 1]


def test_a_tail_that_is_gone_is_looked_for_less_and_less_often(live: LiveDirectory) -> None:
    follower = LogFollower(live.path, lake_of(live), include_uncommitted=True)
    cut = live.batches[-1]
    pauses: list[float] = []

    class Paused(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            pauses.append(timeout)
            if len(pauses) == 1:
                live.truncate(cut.base_offset)
            elif len(pauses) == 10:
                live.append(cut)
            elif len(pauses) == 11:
                self.set()
            return self.is_set()

    follower.run(lambda _: None, poll=0.5, stop=Paused())
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 0.5]


def test_a_bound_within_a_batch_that_is_not_in_the_last_segment_leaves_the_batch(live: LiveDirectory) -> None:
    batch = next(batch for batch in live.batches if batch.last_offset > batch.base_offset)
    live.roll()
    more(live, 1)
    follower = DirectoryFollower(live.path, 0)
    list(follower.poll(batch.last_offset))
    assert follower.next_offset == batch.base_offset
    assert next(follower.poll()) == batch


@few_examples
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=12))
def test_any_interleaving_of_writes_rolls_and_looks_gives_the_log(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool, bool]]
) -> None:
    live = LiveDirectory(tmp_path_factory.mktemp("live") / "__cluster_metadata-0")
    live.append(leader_change(0, 3))
    follower = DirectoryFollower(live.path, 0)
    found: list[RecordBatch] = []
    for count, roll, look in steps:
        if roll and live.end > live.base:
            live.roll()
            more(live, 1)
        more(live, count)
        if look:
            found += follower.poll()
            assert follower.next_offset == live.end
    found += follower.poll()
    assert found == live.batches
    bounded = DirectoryFollower(live.path, 0)
    assert [batch.base_offset for batch in bounded.poll(before=2)] == [0, 1][: live.end]
    live.truncate(max(live.base, live.end - 1))
    if live.end < follower.next_offset:
        with pytest.raises(TruncatedLogError):
            list(follower.poll())
