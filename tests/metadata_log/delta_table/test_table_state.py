from __future__ import annotations

from pathlib import Path

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.maintenance.compaction import compact
from tests.metadata_log.log_batches import data_batch
from tests.metadata_log.maintenance.test_upkeep import DISK, POLICY, assert_readers_agree, grown


def test_a_handle_that_lives_long_does_not_gather_what_upkeep_removed(tmp_path: Path) -> None:
    log = grown(tmp_path / "lake", 12)
    compact(tmp_path / "lake" / "log", DISK, POLICY)
    log.refresh()
    log.append([data_batch(log.end_offset)])
    assert not log._state.tombstones._newest
    assert read_table(tmp_path / "lake" / "log").tombstones.since(0)
    assert_readers_agree(log, log.rows())
