"""What those get who fetch a lake's log, without the requests around it."""

from __future__ import annotations

from pathlib import Path

import kraftlake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.records.batch import RecordBatch
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.serde import ApiMessageAndVersion
from kraftlake.replay.imports.kept_snapshot import keep_snapshot
from kraftlake.runtime.clock import SystemClock
from kraftlake.server.controller.served_log import ServedLog
from tests.cli.running import run
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
