"""Planted faults of logs on disk: lives of a broker through kills and power cuts show each of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings

from kraftlake.replica_manager.errors import CorruptRecordError, ReplicationError
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager
from kraftlake.replica_manager.logs.disk.log_directory import RECOVERY_POINTS
from kraftlake.replica_manager.logs.disk.log_segment import LogSegment
from kraftlake.replica_manager.logs.disk.producer_snapshots import ProducerSnapshots
from kraftlake.runtime.errors import CorruptDataError
from simulator.faulty_files import FaultyFiles
from tests.replica_manager.logs.disk.test_power_cuts import LIVES, SEED, live


@settings(max_examples=400, phases=[Phase.generate], database=None, derandomize=True)
@given(seed=SEED, steps=LIVES)
def run_lives(seed: int, steps: list[tuple[Any, ...]]) -> None:
    live(seed, steps)


def test_a_recovery_point_that_is_checkpointed_before_the_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    def checkpoint_the_end(self: Any, directory: Any, without: Any = ()) -> None:
        checkpoint(self, directory, without)
        logs = {name: log for name, log in self._logs.items() if log.directory == directory.path}
        ends = {name: log.log_end_offset for name, log in logs.items() if name not in without}
        directory.write_offsets(RECOVERY_POINTS, ends)

    checkpoint = DiskLogManager._checkpoint
    monkeypatch.setattr(DiskLogManager, "_checkpoint", checkpoint_the_end)
    with pytest.raises(AssertionError, match="was checkpointed"):
        run_lives()


def test_a_folder_that_is_not_synced_after_a_segment_is_rolled(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin_without_a_note(self: Any, base_offset: int) -> LogSegment:
        noted = self._new_names
        segment = begin(self, base_offset)
        self._new_names = noted
        return segment

    begin = DiskPartitionLog.begin_segment
    monkeypatch.setattr(DiskPartitionLog, "begin_segment", begin_without_a_note)
    with pytest.raises(AssertionError, match=r"had all below|was checkpointed|starts at 0, not in"):
        run_lives()


def test_a_torn_end_that_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def recover_without_a_cut(self: Any, index_interval_bytes: int, *, cut: bool) -> Any:
        try:
            yield from recover(self, index_interval_bytes, cut=False)
        except CorruptRecordError:
            self.become_inactive()

    recover = LogSegment.recover
    monkeypatch.setattr(LogSegment, "recover", recover_without_a_cut)
    with pytest.raises((AssertionError, CorruptDataError, CorruptRecordError)):
        run_lives()


def test_a_snapshot_of_producers_that_is_trusted_behind_the_logs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def delete_those_below_the_start(self: Any, offsets: Any) -> None:
        delete(self, [offset for offset in offsets if offset < max(self.offsets)])

    delete = ProducerSnapshots.delete
    monkeypatch.setattr(ProducerSnapshots, "delete", delete_those_below_the_start)
    with pytest.raises((AssertionError, ReplicationError)):
        run_lives()


def test_a_segment_that_is_not_durable_before_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def roll_without_a_sync(self: Any, base_offset: int | None = None) -> LogSegment:
        with monkeypatch.context() as context:
            context.setattr(DiskPartitionLog, "make_durable", lambda _: None)
            return roll(self, base_offset)

    roll = DiskPartitionLog.roll
    monkeypatch.setattr(DiskPartitionLog, "roll", roll_without_a_sync)
    with pytest.raises(AssertionError, match="has the batches"):
        run_lives()


def test_names_that_are_never_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FaultyFiles, "sync_folder", lambda *_: None)
    with pytest.raises(AssertionError, match="is gone"):
        run_lives()
