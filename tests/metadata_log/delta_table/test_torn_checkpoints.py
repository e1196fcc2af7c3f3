"""A checkpoint that can't be read: the commits are read in its place, or the file is named."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from structlog.testing import capture_logs

from kraftlake.metadata_log.delta_table import checkpoint as delta_checkpoint
from kraftlake.metadata_log.delta_table.checkpoint_writer import write_checkpoint
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due, clean_up_commits
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.runtime.errors import CorruptDataError, RefusedReadError
from tests.metadata_log.delta_table.test_delta_log import VERSIONS, assert_whole, checkpoint, grown, remove_commits
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch

DISK = UnsyncedDisk()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return grown(tmp_path / "lake")


def own_checkpoint(table: Path) -> Path:
    write_checkpoint(DISK, read_table(table), removed_since=0)
    (path,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    return path


def test_a_torn_checkpoint_is_passed_over_with_its_name_where_the_commits_are_there(table: Path) -> None:
    older = checkpoint(table, 5)
    whole = checkpoint(table)
    whole.write_bytes(whole.read_bytes()[:-50])
    with capture_logs() as logs:
        assert_whole(read_table(table))
    assert [(entry["event"], entry["file"]) for entry in logs] == [("checkpoint_unreadable", str(whole))]
    remove_commits(table, 5)
    assert_whole(read_table(table))
    MetadataLog.open(table.parent, disk=DISK).append([data_batch(VERSIONS)])
    assert MetadataLog.open(table.parent).rows().num_rows == VERSIONS + 1
    older.write_bytes(b"")
    with pytest.raises(CorruptDataError, match=rf"{whole.name} is no checkpoint .* commits .* not all there"):
        read_table(table)


def test_a_checkpoint_that_the_disk_refuses_is_no_torn_one(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = own_checkpoint(table)

    def refuse(place: Path) -> pq.ParquetFile:
        raise OSError(5, "Input/output error", str(place))

    monkeypatch.setattr(delta_checkpoint, "open_parquet_file", refuse)
    with capture_logs() as logs, pytest.raises(RefusedReadError, match=f"{path.name} can't be read: Input/output"):
        read_table(table)
    assert logs == []
    path.with_name("_last_checkpoint").unlink()
    with capture_logs() as logs, pytest.raises(RefusedReadError, match=f"{path.name} can't be read: Input/output"):
        read_table(table)
    assert logs == []


@pytest.mark.parametrize("lost", [6, VERSIONS])
def test_a_torn_checkpoint_is_named_where_a_commit_that_it_stands_for_is_gone(table: Path, lost: int) -> None:
    whole = checkpoint(table)
    whole.write_bytes(whole.read_bytes()[:-50])
    commit_path(table, lost).unlink()
    with pytest.raises(CorruptDataError, match=rf"{whole.name} is no checkpoint .* restore it from a copy"):
        read_table(table)


def test_the_commits_say_which_files_there_are_where_a_checkpoint_turns_out_to_be_torn(table: Path) -> None:
    path = own_checkpoint(table)
    column = pq.ParquetFile(path).metadata.row_group(1).column(3)
    data = bytearray(path.read_bytes())
    begin = column.data_page_offset
    data[begin : begin + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(data)
    with capture_logs() as logs:
        assert MetadataLog.open(table.parent).rows().num_rows == VERSIONS
    assert [entry["event"] for entry in logs] == ["checkpoint_unreadable"]
    commit_path(table, 6).unlink()
    with pytest.raises(CorruptDataError, match=rf"{path.name} is no checkpoint"):
        MetadataLog.open(table.parent).rows()


def test_an_older_checkpoint_under_a_newer_ones_name_is_passed_over(table: Path) -> None:
    older = own_checkpoint(table)
    log = MetadataLog.open(table.parent, disk=DISK)
    log.append([data_batch(VERSIONS)])
    write_checkpoint(DISK, read_table(table), removed_since=0)
    newer = older.with_name(f"{VERSIONS + 1:020d}.checkpoint.parquet")
    newer.write_bytes(older.read_bytes())
    assert MetadataLog.open(table.parent).rows().num_rows == VERSIONS + 1
    commit_path(table, VERSIONS + 1).unlink()
    with pytest.raises(CorruptDataError, match=rf"{newer.name} is no checkpoint"):
        read_table(table)


def test_the_next_checkpoint_of_a_version_takes_the_place_of_a_torn_one(table: Path) -> None:
    path = own_checkpoint(table)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert checkpoint_if_due(table, DISK, UpkeepPolicy(), force=True) is not None
    assert path.read_bytes() == whole
    remove_commits(table, VERSIONS)
    assert_whole(read_table(table))


def test_no_commit_is_cleaned_up_for_a_checkpoint_that_cannot_stand_for_it(table: Path) -> None:
    policy = UpkeepPolicy(checkpoint_after=1, keep_commits=0)
    for path in (table / "_delta_log").glob("*.json"):
        os.utime(path, (1, 1))
    whole = checkpoint(table)
    whole.write_bytes(whole.read_bytes()[:-50])
    assert clean_up_commits(table, DISK, policy).commits == 0
    whole.unlink()
    assert clean_up_commits(table, DISK, policy).commits == 0
    whole.with_name("_last_checkpoint").write_text('{"version":99}')
    assert clean_up_commits(table, DISK, policy).commits == 0
    assert_whole(read_table(table))
    checkpoint(table)
    assert clean_up_commits(table, DISK, policy).commits == VERSIONS
    assert_whole(read_table(table))
