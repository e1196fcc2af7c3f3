"""Writers that sleep between a data file and its commit, for longer than a vacuum leaves such files alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kraftlake.metadata_log.delta_table.commit import SAFE_FROM_VACUUM_MS
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.compaction import compact
from kraftlake.metadata_log.maintenance.upkeep_policy import LONGEST_COMMIT_MS
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from tests.metadata_log.log_batches import TIME, data_batch, snapshot_batches
from tests.metadata_log.sleepy_disk import MINUTE, POLICY, SleepyDisk, refused


@pytest.fixture(params=["os", "fsync"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> SleepyDisk:
    return SleepyDisk(tmp_path / "lake", request.param)


def test_an_append_whose_file_was_vacuumed_is_refused_and_can_be_made_again(disk: SleepyDisk) -> None:
    log = MetadataLog.create(disk.lake, disk=disk)
    log.append([data_batch(0, 3)])
    refused(disk, lambda: log.append([data_batch(3, 2)]))
    opened = MetadataLog.open(disk.lake)
    assert (opened.version, opened.end_offset, opened.rows().num_rows) == (2, 5, 5)


def test_a_claimed_writer_goes_on_where_nobody_claimed_meanwhile(disk: SleepyDisk) -> None:
    log = MetadataLog.create(disk.lake, role="controlled", disk=disk)
    epoch = log.claim(1)
    refused(disk, lambda: log.append([data_batch(1, epoch=epoch)], epoch=epoch, expected_end_offset=1), minutes=16)
    assert MetadataLog.open(disk.lake).end_offset == 2


@pytest.mark.parametrize("sleeps_ms", [SAFE_FROM_VACUUM_MS - 1, SAFE_FROM_VACUUM_MS, LONGEST_COMMIT_MS - 5_000])
def test_a_sleep_that_no_vacuum_takes_for_a_crash_costs_nothing(disk: SleepyDisk, sleeps_ms: int) -> None:
    log = MetadataLog.create(disk.lake, disk=disk)
    disk.sleeps_ms = sleeps_ms
    log.append([data_batch(0, 3)])
    assert disk.is_whole()
    assert MetadataLog.open(disk.lake).rows().num_rows == 3


def test_a_long_sleep_without_a_vacuum_costs_nothing_either(disk: SleepyDisk) -> None:
    disk.vacuums = False
    log = MetadataLog.create(disk.lake, disk=disk)
    disk.sleeps_ms = 10_000 * MINUTE
    log.append([data_batch(0, 3)])
    assert MetadataLog.open(disk.lake).rows().num_rows == 3


def test_a_snapshot_is_refused_as_well(disk: SleepyDisk) -> None:
    log = MetadataLog.create(disk.lake, disk=disk)
    log.append([data_batch(0, 5)])

    def add() -> None:
        log.add_snapshot(SnapshotFacts(end_offset=5, epoch=1, last_contained_log_timestamp=TIME), snapshot_batches(3))

    disk.behind = "fsync"
    add_at = disk.lake / "snapshots"
    refused(disk, add)
    assert len(read_table(add_at).files) == 1
    assert len(MetadataLog.open(disk.lake).snapshots()) == 1


def test_a_compaction_that_slept_leaves_the_rows_where_they_are(disk: SleepyDisk) -> None:
    log = MetadataLog.create(disk.lake, disk=disk)
    for offset in range(6):
        log.append([data_batch(offset)])
    rows: pa.Table = log.rows()
    disk.behind = "fsync"
    refused(disk, lambda: compact(disk.lake / "log", disk, POLICY))
    assert MetadataLog.open(disk.lake).rows().equals(rows)
    assert len(read_table(disk.lake / "log").files) == 1
