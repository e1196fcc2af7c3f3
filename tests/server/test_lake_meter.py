"""What is measured of a lake: its end, its size, its tables' lag, and whether its rows are those that were appended."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.server import lake_meter
from kraftlake.server.lake_meter import LakeMeter
from kraftlake.tables.catch_up.updating import update_tables
from tests.metadata_log.log_batches import data_batch
from tests.server.fake_clusters import small_log


def append(lake: Path, count: int = 1) -> None:
    log = MetadataLog.open(lake)
    for _ in range(count):
        log.append([data_batch(log.end_offset, epoch=log.epoch)])


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    MetadataLog.create(tmp_path / "lake", durability="os").append(small_log())
    return tmp_path / "lake"


def test_a_lake_is_measured_by_its_tables(lake: Path) -> None:
    update_tables(lake, ["events"])
    covered = MetadataLog.open(lake).end_offset - 1
    append(lake, 3)
    figures, log = LakeMeter(str(lake)).measure(), MetadataLog.open(lake)
    files = read_table(lake / "log").files.values()
    assert (figures.start_offset, figures.end_offset, figures.commits) == (0, log.end_offset, log.version + 1)
    assert figures.timestamp == [*log.batches()][-1].timestamp
    assert figures.tables["log"].files == len(files) == 4
    assert figures.tables["log"].bytes == sum(path.stat().st_size for path in (lake / "log").glob("*.parquet"))
    assert figures.tables["log"].unchecked_commits == log.version
    assert figures.covered == {"events": covered}


def test_new_rows_are_hashed_again_in_bounded_steps(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = LakeMeter(str(lake))
    begin = meter.measure()
    assert (begin.chain_checks, begin.chain_end) == (0, begin.end_offset)
    append(lake, 4)
    monkeypatch.setattr(lake_meter, "_ROWS_AT_ONCE", 1)
    ends = [meter.measure().chain_end for _ in range(4)]
    assert ends == sorted({*ends})
    assert ends[-1] == MetadataLog.open(lake).end_offset
    assert meter.measure().chain_faults == 0


def test_rows_that_were_replaced_are_a_fault(lake: Path) -> None:
    meter = LakeMeter(str(lake))
    meter.measure()
    append(lake)
    first, newest = sorted((lake / "log").glob("*.parquet"))
    shutil.copyfile(first, newest)
    with capture_logs() as logs:
        assert meter.measure().chain_faults == 1
    ((event, reason),) = [(one["event"], one["reason"]) for one in logs]
    assert event == "chain_broken"
    assert newest.name in reason
    assert meter.measure().chain_faults == 1, "it is counted once"


def test_a_lake_that_ends_earlier_than_it_did_is_counted(lake: Path, tmp_path: Path) -> None:
    shutil.copytree(lake, tmp_path / "copy")
    append(lake)
    meter = LakeMeter(str(lake))
    assert meter.measure().shortened == 0
    shutil.rmtree(lake)
    (tmp_path / "copy").rename(lake)
    with capture_logs() as logs:
        assert meter.measure().shortened == 1
    assert logs[0]["event"] == "lake_shortened"
    assert meter.measure().shortened == 1
