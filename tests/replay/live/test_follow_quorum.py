from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftlake.api import open_source
from kraftlake.kafka_files.writer import write_checkpoint
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.node_connector import NodeConnector
from kraftlake.protocol.node_error import NodeError, NoLeaderError, OlderLeaderError
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.records.batch import encode_batch
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replay.imports.follow_log import FollowStep
from kraftlake.replay.live.follow_quorum import QuorumFollower
from kraftlake.replay.live.open_quorum import mirror_quorum
from kraftlake.replay.live.retry_policy import RetryPolicy
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.errors import ImportConflictError, LakeError
from tests.protocol.fake_nodes import CLUSTER_ID
from tests.protocol.observer.fake_quorum import FakeQuorum
from tests.protocol.observer.model_quorum import ModelQuorum
from tests.waiting import PATIENCE

NO_PATIENCE = RetryPolicy(wait=lambda _: None, limit=0.0)


@pytest.fixture
def quorum() -> Iterator[FakeQuorum]:
    model = ModelQuorum()
    model.elect(0, 1)
    commit(model, 5)
    fake = FakeQuorum(model)
    with fake.serving():
        yield fake


def commit(model: ModelQuorum, batches: int) -> None:
    for count in range(batches):
        model.append(count % 3 + 1)
    model.replicate((model.leader + 1) % 3, 999)


def snapshot(quorum: FakeQuorum, tmp_path: Path, at: int, *, keeps_log: bool = False) -> OffsetAndEpoch:
    """The leader makes a snapshot at the end of a batch, and deletes its log up to there."""
    before = next(batch for batch in reversed(quorum.model.committed) if batch.last_offset < at)
    end = OffsetAndEpoch(offset=before.last_offset + 1, epoch=before.epoch)
    write_checkpoint(tmp_path / "made.checkpoint", [], epoch=end.epoch, timestamp=before.timestamp)
    quorum.snapshot_file = (tmp_path / "made.checkpoint").read_bytes()
    quorum.model.snapshot = end
    if not keeps_log:
        quorum.model.log_start_offset, quorum.model.log_start_epoch = end.offset, end.epoch
        quorum.model.logs = [[b for b in log if b.base_offset >= end.offset] for log in quorum.model.logs]
    return end


@contextmanager
def follower_of(quorum: FakeQuorum, lake: Path, clock: ManualClock) -> Iterator[QuorumFollower]:
    with QuorumObserver(quorum.addresses, connect=NodeConnector(timeout=PATIENCE)) as observer:
        yield QuorumFollower(observer, lake, name="the quorum", clock=clock)


class Ticking(ManualClock):
    """Its time passes so fast that what is held back is due at once."""

    def nanoseconds(self) -> int:
        self.advance(6_000)
        return super().nanoseconds()


def follow(quorum: FakeQuorum, lake: Path) -> list[FollowStep]:
    """Follow until the lake has everything that is committed; return the steps."""
    stop, steps = threading.Event(), []
    end = quorum.model.committed[-1].last_offset + 1

    def on_step(step: FollowStep) -> None:
        steps.append(step)
        if step.end_offset >= end:
            stop.set()

    with follower_of(quorum, lake, Ticking()) as follower:
        follower.run(on_step, patience=NO_PATIENCE, stop=stop)
    return steps


def check_same(quorum: FakeQuorum, lake: Path) -> None:
    log = MetadataLog.open(lake)
    kept = [batch.data for batch in quorum.model.committed if batch.base_offset >= log.start_offset]
    assert [encode_batch(batch) for batch in log.batches()] == kept
    assert log.committed_to == log.end_offset
    assert not open_source(lake).verify().problems


def test_a_lake_is_made_of_all_that_is_committed_and_goes_on_where_it_ends(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.model.append()  # nobody has copied it
    follow(quorum, tmp_path / "lake")
    check_same(quorum, tmp_path / "lake")
    assert MetadataLog.open(tmp_path / "lake").cluster_id == quorum.cluster_id
    assert quorum.model.elect(1, 2)
    commit(quorum.model, 4)
    assert [step.end_offset for step in follow(quorum, tmp_path / "lake")][-1] == quorum.model.high_watermark
    check_same(quorum, tmp_path / "lake")


def test_a_lake_of_another_log_is_left_as_it_is(quorum: FakeQuorum, tmp_path: Path) -> None:
    follow(quorum, tmp_path / "lake")
    other = FakeQuorum(ModelQuorum(first_timestamp=0))
    other.model.elect(2, 0)
    commit(other.model, 30)
    with other.serving(), pytest.raises(ImportConflictError, match=r"Offset \d+ of the quorum is not that of the lake"):
        follow(other, tmp_path / "lake")
    short = FakeQuorum(ModelQuorum())
    short.model.elect(2, 0)
    commit(short.model, 0)
    with short.serving(), pytest.raises(ImportConflictError, match="the log of the quorum ends before that"):
        follow(short, tmp_path / "lake")
    check_same(quorum, tmp_path / "lake")


def test_another_cluster_is_recognised_by_its_id(quorum: FakeQuorum, tmp_path: Path) -> None:
    follow(quorum, tmp_path / "lake")
    quorum.cluster_id = "another-cluster"
    with pytest.raises(ImportConflictError, match=f"is a node of cluster another-cluster, not of {CLUSTER_ID}: "):
        follow(quorum, tmp_path / "lake")


def test_a_log_that_starts_late_begins_with_the_snapshot_at_its_start(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.model.elect(1, 2)
    commit(quorum.model, 4)
    end = snapshot(quorum, tmp_path, at=quorum.model.high_watermark - 3)
    follow(quorum, tmp_path / "lake")
    log = MetadataLog.open(tmp_path / "lake")
    assert log.start_offset == end.offset
    assert [(one.end_offset, one.epoch) for one in log.snapshots()] == [(end.offset, end.epoch)]
    check_same(quorum, tmp_path / "lake")


def test_a_log_that_starts_at_0_is_taken_from_there_beside_its_snapshot(quorum: FakeQuorum, tmp_path: Path) -> None:
    snapshot(quorum, tmp_path, at=6, keeps_log=True)
    follow(quorum, tmp_path / "lake")
    assert MetadataLog.open(tmp_path / "lake").start_offset == 1, "no Fetch gives a first batch of one record"
    check_same(quorum, tmp_path / "lake")


def several_epochs(quorum: FakeQuorum) -> None:
    """Two more leaders, the second of which has another leader's records above what was committed."""
    assert quorum.model.elect(1, 2)
    commit(quorum.model, 6)
    quorum.model.append()
    assert quorum.model.elect(2, 0)
    commit(quorum.model, 6)


def test_a_snapshot_of_a_later_epoch_stands_in_no_new_lake_s_way(quorum: FakeQuorum, tmp_path: Path) -> None:
    several_epochs(quorum)
    snapshot(quorum, tmp_path, at=quorum.model.high_watermark - 1, keeps_log=True)
    follow(quorum, tmp_path / "lake")
    check_same(quorum, tmp_path / "lake")
    assert quorum.fetches < 3 * len(quorum.model.committed)


def test_nor_in_that_of_a_lake_at_an_earlier_epoch(quorum: FakeQuorum, tmp_path: Path) -> None:
    follow(quorum, tmp_path / "lake")
    several_epochs(quorum)
    snapshot(quorum, tmp_path, at=quorum.model.high_watermark - 1, keeps_log=True)
    follow(quorum, tmp_path / "lake")
    check_same(quorum, tmp_path / "lake")


def test_a_snapshot_at_the_lake_s_end_of_another_epoch_is_of_another_log(quorum: FakeQuorum, tmp_path: Path) -> None:
    follow(quorum, tmp_path / "lake")
    end = MetadataLog.open(tmp_path / "lake").end_offset
    several_epochs(quorum)
    snapshot(quorum, tmp_path, at=quorum.model.high_watermark - 1)
    quorum.model.log_start_offset = end
    with pytest.raises(ImportConflictError, match=f"Offset {end - 1} of the quorum is not that of the lake"):
        follow(quorum, tmp_path / "lake")


def test_a_quorum_that_deletes_its_log_again_and_again_is_given_up(
    quorum: FakeQuorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def deleted(*_: object, **__: object) -> None:
        raise SnapshotNeededError(OffsetAndEpoch(offset=9, epoch=1), 9)

    monkeypatch.setattr(QuorumObserver, "fetch", deleted)
    with (
        QuorumObserver(quorum.addresses, connect=NodeConnector(timeout=PATIENCE)) as observer,
        pytest.raises(NodeError, match="the quorum has deleted what was being copied"),
    ):
        mirror_quorum(
            observer, tmp_path, name="the quorum", patience=RetryPolicy(wait=pauses.append, chance=lambda: 0.5)
        )
    assert len(pauses) == 8
    assert pauses[-1] > 4 * pauses[0]


def test_a_snapshot_that_is_gone_is_asked_for_once_and_the_copy_begins_again(
    quorum: FakeQuorum, tmp_path: Path
) -> None:
    snapshot(quorum, tmp_path, at=6)
    quorum.snapshot_error = ErrorCode.SNAPSHOT_NOT_FOUND
    pauses: list[float] = []

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        quorum.snapshot_error = ErrorCode.NONE

    with QuorumObserver(quorum.addresses, connect=NodeConnector(timeout=PATIENCE)) as observer:
        copy = mirror_quorum(observer, tmp_path, name="the quorum", patience=RetryPolicy(wait=wait))
    assert (len(pauses), copy.start_offset) == (1, quorum.model.log_start_offset)
    quorum.snapshot_error = ErrorCode.SNAPSHOT_NOT_FOUND
    (tmp_path / "lost").mkdir()
    with (
        QuorumObserver(quorum.addresses, connect=NodeConnector(timeout=PATIENCE)) as observer,
        pytest.raises(NodeError, match=r"^the quorum has deleted what was being copied: \S+ has deleted the snapshot"),
    ):
        mirror_quorum(observer, tmp_path / "lost", name="the quorum", patience=RetryPolicy(wait=lambda _: None))


def test_a_lake_that_was_left_behind_is_refused_with_the_way_out(quorum: FakeQuorum, tmp_path: Path) -> None:
    follow(quorum, tmp_path / "lake")
    end = MetadataLog.open(tmp_path / "lake").end_offset
    commit(quorum.model, 9)
    start = snapshot(quorum, tmp_path, at=quorum.model.high_watermark - 2).offset
    with pytest.raises(
        ImportConflictError, match=f"ends at offset {end - 1}, but the log of the quorum starts at offset {start} now"
    ):
        follow(quorum, tmp_path / "lake")


def _interrupted(quorum: FakeQuorum, lake: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """The making of a lake ends with a fault in `method` of its log, and the lake stays as an object store keeps it."""

    def refuse(*_: object) -> None:
        raise LakeError("503 Slow Down")

    with monkeypatch.context() as patch:
        patch.setattr("kraftlake.replay.imports.import_log.discard_empty_lake", lambda *_, **__: None)
        patch.setattr(MetadataLog, method, refuse)
        with pytest.raises(LakeError, match="503"):
            follow(quorum, lake)
    log = MetadataLog.open(lake)
    assert log.end_offset == log.start_offset


@pytest.mark.parametrize("method", ["add_snapshot", "append"])
@pytest.mark.parametrize("keeps_log", [True, False])
def test_a_lake_whose_making_was_interrupted_is_made_whole(
    quorum: FakeQuorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, keeps_log: bool
) -> None:
    end = snapshot(quorum, tmp_path, at=6, keeps_log=keeps_log)
    _interrupted(quorum, tmp_path / "lake", monkeypatch, method)
    follow(quorum, tmp_path / "lake")
    assert [one.end_offset for one in MetadataLog.open(tmp_path / "lake").snapshots()] == [end.offset]
    check_same(quorum, tmp_path / "lake")


def test_a_lake_without_records_that_the_quorum_has_left_behind_may_be_deleted(
    quorum: FakeQuorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot(quorum, tmp_path, at=6, keeps_log=True)
    _interrupted(quorum, tmp_path / "lake", monkeypatch, "add_snapshot")
    commit(quorum.model, 9)
    start = snapshot(quorum, tmp_path, at=quorum.model.high_watermark - 2).offset
    with pytest.raises(ImportConflictError, match=rf"holds no records .* at offset {start} now: delete the lake"):
        follow(quorum, tmp_path / "lake")


def level(quorum: FakeQuorum, follower: QuorumFollower) -> None:
    while follower.step(NO_PATIENCE).end_offset < quorum.model.committed[-1].last_offset + 1:
        pass


@contextmanager
def put_back(quorum: FakeQuorum, lake: Path) -> Iterator[QuorumFollower]:
    """A follower that is level while all disks are put back to a state two epochs ago; the model leads the next one."""
    model = quorum.model
    assert model.elect(0, 1)
    commit(model, 3)
    logs, committed, epoch = [list(log) for log in model.logs], list(model.committed), model.epoch
    for _ in range(2):
        assert model.elect(0, 1)
        commit(model, 3)
    with follower_of(quorum, lake, Ticking()) as follower:
        level(quorum, follower)
        model.logs, model.committed, model.epoch = logs, committed, epoch
        model.first_timestamp += 60_000
        assert model.elect(0, 1)
        commit(model, 1)
        yield follower


def batches_of(lake: Path) -> list[bytes]:
    return [encode_batch(batch) for batch in MetadataLog.open(lake).batches()]


def test_a_follower_takes_nothing_of_a_quorum_that_was_put_back_to_an_earlier_state(
    quorum: FakeQuorum, tmp_path: Path
) -> None:
    with put_back(quorum, tmp_path / "lake") as follower:
        before = batches_of(tmp_path / "lake")
        with pytest.raises(OlderLeaderError, match=r"names node 0 of epoch 3, but epoch 4 is known"):
            follower.step(NO_PATIENCE)
        assert quorum.model.elect(0, 1)
        commit(quorum.model, 20)
        with pytest.raises(ImportConflictError, match=r"Offset \d+ of the quorum is not that of the lake"):
            level(quorum, follower)
        assert batches_of(tmp_path / "lake") == before


def test_nor_does_it_wait_for_its_epoch_for_ever(quorum: FakeQuorum, tmp_path: Path) -> None:
    with put_back(quorum, tmp_path / "lake") as follower:
        pauses: list[float] = []
        patience = RetryPolicy(wait=pauses.append, reached=True)
        with pytest.raises(ImportConflictError, match="the log of the quorum ends before that"):
            follower.run(lambda _: None, patience=patience, stop=threading.Event())
        assert len(pauses) == 6, "of thirty seconds, by a clock that goes on by six at each look"


def test_a_follower_goes_on_through_elections_and_broken_connections(quorum: FakeQuorum, tmp_path: Path) -> None:
    clock, model = ManualClock(), quorum.model
    with follower_of(quorum, tmp_path / "lake", clock) as follower:
        level(quorum, follower)
        for _ in range(4):
            commit(model, 2)
            follower.step(NO_PATIENCE)  # holds the no-op records back
            model.append()
            follower.step(NO_PATIENCE)  # has a record that nobody copies
            quorum.spoil = lambda _: b"\0\0\0\0"
            with pytest.raises(NodeError):
                follower.step(NO_PATIENCE)
            quorum.spoil = lambda data: data
            assert model.elect((model.leader + 1) % 3, (model.leader + 2) % 3)
            commit(model, 2)
            for _ in range(4):
                follower.step(NO_PATIENCE)
        clock.advance(6_000)
        level(quorum, follower)
    check_same(quorum, tmp_path / "lake")


def test_no_ops_are_held_back_for_five_seconds_and_no_longer(quorum: FakeQuorum, tmp_path: Path) -> None:
    clock = ManualClock()
    with follower_of(quorum, tmp_path / "lake", clock) as follower:
        end = follower.step(NO_PATIENCE).end_offset
        commit(quorum.model, 2)
        clock.advance(1)
        assert not follower.step(NO_PATIENCE).is_news
        clock.advance(4_998)
        assert not follower.step(NO_PATIENCE).is_news
        clock.advance(2)
        step = follower.step(NO_PATIENCE)
    assert (step.from_offset, step.end_offset) == (end, quorum.model.high_watermark)
    check_same(quorum, tmp_path / "lake")


class OnePause(threading.Event):
    """Is set by the first pause, whose length it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        self.set()
        return True


def test_after_no_ops_alone_a_follower_of_many_pauses(quorum: FakeQuorum, tmp_path: Path) -> None:
    stop, steps = OnePause(), list[FollowStep]()
    with QuorumObserver(quorum.addresses, connect=NodeConnector(timeout=PATIENCE)) as observer:
        follower = QuorumFollower(
            observer, tmp_path / "lake", name="the quorum", clock=ManualClock(), quiet_pause=0.7
        )  # fmt: skip
        end = follower.step(NO_PATIENCE).end_offset
        commit(quorum.model, 2)
        follower.run(steps.append, patience=NO_PATIENCE, stop=stop)
    assert stop.seconds == [0.7]
    assert (steps[-1].from_offset, steps[-1].end_offset) == (end, quorum.model.high_watermark)
    check_same(quorum, tmp_path / "lake")


def test_a_quorum_that_never_answers_makes_no_lake(tmp_path: Path) -> None:
    silent = FakeQuorum(ModelQuorum())
    silent.refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    with (
        silent.serving(),
        follower_of(silent, tmp_path / "lake", ManualClock()) as follower,
        pytest.raises(NoLeaderError),
    ):
        follower.step(NO_PATIENCE)
    assert not (tmp_path / "lake").exists()
