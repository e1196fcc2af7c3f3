"""What those get who fetch a lake's log, without the requests around it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.reading.tail import TailCursor
from kraftlake.records.batch import RecordBatch, encode_batch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.runtime.clock import SystemClock
from kraftlake.server.controller import served_log
from kraftlake.server.controller.served_log import ServedLog
from tests.cli.running import run
from tests.metadata_log.log_batches import data_batch, leader_change
from tests.server.controller.controllers import PATIENCE, new_lake


def test_a_damaged_snapshot_is_not_named_to_who_needs_one(tmp_path: Path) -> None:
    lake = new_lake(tmp_path / "lake")
    run("topics", "create", "orders", "--assign", "1", "--lake", lake, code=1)
    log = MetadataLog.open(lake, durability="os")
    for _ in range(10):
        no_op = [ApiMessageAndVersion(NoOpRecord(), 0)]
        log.append([RecordBatch.of(log.end_offset, log.epoch, 0, no_op)], epoch=log.epoch)
    ends = (log.end_offset - 6, log.end_offset - 2)
    for end in ends:
        replay = kraftlake.open(lake).replay(end - 1)
        keep_snapshot(log, replay.image, replay.quorum)
    Upkeep(lake).trim(ends[0], stream_lag_ms=0)
    served = ServedLog(lake, SystemClock())
    try:
        behind = OffsetAndEpoch(offset=0, epoch=0)
        newest, older = (OffsetAndEpoch(offset=end, epoch=log.epoch) for end in reversed(ends))
        assert served.read(behind, max_bytes=1_000).result(PATIENCE).snapshot == newest
        (path,) = log.snapshots()[-1].data_paths
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        again = ServedLog(lake, SystemClock())
        try:
            assert again.read(behind, max_bytes=1_000).result(PATIENCE).snapshot == older
            assert again.snapshot(newest).result(PATIENCE) is None
            assert again.snapshot(older).result(PATIENCE)
        finally:
            again.close()
    finally:
        served.close()


def test_batches_at_the_end_are_served_as_they_are_in_the_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_log, "_NEWEST_BYTES", 500)
    log = MetadataLog.create(tmp_path / "lake", "cluster", "imported", durability="os")
    log.append([leader_change(0, epoch=1), data_batch(1, 3)])
    served = ServedLog(log.path, SystemClock())
    try:

        def records(offset: int, epoch: int) -> bytes:
            return served.read(OffsetAndEpoch(offset=offset, epoch=epoch), max_bytes=100_000).result(PATIENCE).records

        assert records(0, 0) == b"".join(map(encode_batch, log.batches()))
        for epoch in (1, 2, 3):
            log.append([leader_change(log.end_offset, epoch=epoch), data_batch(log.end_offset + 1, 3, epoch=epoch)])
            before, all_batches = log.end_offset - 4, [*log.batches()]
            for batch in all_batches:
                known = [encode_batch(one) for one in all_batches if one.last_offset >= batch.last_offset]
                assert records(batch.last_offset, batch.epoch) == b"".join(known)
            held = served._newest
            assert held[-1][:2] == (before + 1, log.end_offset - 1)
        assert 0 < held[0][0] < before, "some are kept, and not all"
        diverging = served.read(OffsetAndEpoch(offset=before, epoch=1), max_bytes=1_000).result(PATIENCE).diverging
        assert diverging == OffsetAndEpoch(offset=8, epoch=1)
    finally:
        served.close()


def test_epochs_are_known_once_after_a_look_that_failed_behind_new_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MetadataLog.create(tmp_path / "lake", "cluster", "imported", durability="os")
    log.append([leader_change(0, epoch=1)])
    served = ServedLog(log.path, SystemClock())
    try:
        assert served.read(OffsetAndEpoch(offset=0, epoch=0), max_bytes=1_000).result(PATIENCE).records
        log.append([leader_change(1, epoch=2), leader_change(2, epoch=3)])
        step, looks = TailCursor.step, itertools.count()

        def failing(cursor: TailCursor) -> Sequence[RecordBatch]:
            if next(looks) == 1:
                raise OSError("the disk is out of reach")
            return step(cursor)

        monkeypatch.setattr(TailCursor, "step", failing)
        with pytest.raises(OSError, match="out of reach"):
            served.read(OffsetAndEpoch(offset=1, epoch=1), max_bytes=1_000).result(PATIENCE)
        log.append([leader_change(3, epoch=4)])
        diverging = served.read(OffsetAndEpoch(offset=4, epoch=2), max_bytes=1_000).result(PATIENCE).diverging
        assert diverging == OffsetAndEpoch(offset=2, epoch=2)
        assert [(one.offset, one.epoch) for one in served._epochs] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    finally:
        served.close()
