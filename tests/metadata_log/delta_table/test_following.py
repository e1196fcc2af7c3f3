"""Handles of a lake that is deleted, replaced by another one, or put back to an earlier state while they are in use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftlake.metadata_log.delta_table.delta_log import ReplacedTableError, advance, read_table
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due, clean_up_commits
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.reading.tail import TailCursor
from kraftlake.runtime.errors import RefusedReadError
from tests.metadata_log.delta_table.test_delta_log import VERSIONS, checkpoint, grown, remove_commits
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch

DISK = UnsyncedDisk()
POLICY = UpkeepPolicy(checkpoint_after=1, keep_commits=0)


def controlled(lake: Path, versions: int) -> MetadataLog:
    """A lake of a claim and appends, up to a version."""
    log = MetadataLog.create(lake, "cluster", "controlled", disk=DISK)
    epoch = log.claim(1)
    while log.version < versions:
        log.append([data_batch(log.end_offset, epoch=epoch)], epoch=epoch)
    return log


def clean_up(log: MetadataLog) -> None:
    """Leave of the commits those behind a checkpoint of the newest version."""
    table = log.path / "log"
    assert isinstance(table, Path)
    checkpoint_if_due(table, DISK, POLICY, force=True)
    for path in (table / "_delta_log").glob("*.json"):
        os.utime(path, (1, 1))
    clean_up_commits(table, DISK, POLICY)


def delete(lake: Path) -> None:
    shutil.rmtree(lake)


def replace_by_a_younger_one(lake: Path) -> None:
    shutil.rmtree(lake)
    controlled(lake, 3)


def replace_by_a_younger_one_of_which_a_checkpoint_is_left(lake: Path) -> None:
    shutil.rmtree(lake)
    clean_up(controlled(lake, 3))


def replace_by_an_older_one(lake: Path) -> None:
    shutil.rmtree(lake)
    log = controlled(lake, 40)
    clean_up(log)
    log.append([data_batch(40, epoch=1)], epoch=1)


def put_back_to_an_earlier_state(lake: Path) -> None:
    shutil.rmtree(lake)
    shutil.copytree(lake.with_name("copy"), lake)


def put_back_to_an_earlier_state_that_has_gone_on(lake: Path) -> None:
    put_back_to_an_earlier_state(lake)
    log = MetadataLog.open(lake, disk=DISK)
    while log.version < 30:
        clean_up(log)
        log.claim(7)
    clean_up(log)


@pytest.mark.parametrize(
    "change",
    [
        delete,
        replace_by_a_younger_one,
        replace_by_a_younger_one_of_which_a_checkpoint_is_left,
        replace_by_an_older_one,
        put_back_to_an_earlier_state,
    ],
)
def test_a_lake_that_was_deleted_or_replaced_is_an_error_to_its_followers_and_never_written_to(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    lake = tmp_path / "lake"
    writer = controlled(lake, 10)
    shutil.copytree(lake, tmp_path / "copy")
    for _ in range(10):
        writer.append([data_batch(writer.end_offset, epoch=1)], epoch=1)
    reader, standby = MetadataLog.open(lake, disk=DISK), MetadataLog.open(lake, disk=DISK)
    cursor = TailCursor(MetadataLog.open(lake), None, 0.1)
    change(lake)
    files = sorted(lake.rglob("*"))

    message = r"log is no longer the table that was read there up to version 20: .* start everything anew"
    with pytest.raises(ReplacedTableError, match=message):
        [cursor.step() for _ in range(3)]
    for _ in range(2):
        with pytest.raises(ReplacedTableError, match=message):
            reader.refresh()
    with pytest.raises(ReplacedTableError, match=message):
        standby.claim(2)
    if lake.exists():  # else the disk refuses the data file
        for _ in range(2):
            with pytest.raises(ReplacedTableError, match=message):
                writer.append([data_batch(20, epoch=1)], epoch=1)
    assert sorted(lake.rglob("*")) == files
    assert (reader.version, reader.end_offset, reader.epoch) == (20, 20, 1)


def test_a_log_that_ends_earlier_is_an_earlier_state_whatever_was_committed_to_it_since(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    log = controlled(lake, 10)
    shutil.copytree(lake, tmp_path / "copy")
    log.append([data_batch(log.end_offset, 1_000, epoch=1)], epoch=1)
    put_back_to_an_earlier_state_that_has_gone_on(lake)
    with pytest.raises(ReplacedTableError):
        log.refresh()


def test_a_version_of_which_the_checkpoint_alone_is_left_is_followed_and_written_to(tmp_path: Path) -> None:
    table = grown(tmp_path / "lake")
    log, behind = MetadataLog.open(table.parent, disk=DISK), read_table(table)
    cursor = TailCursor(MetadataLog.open(table.parent), None, 0.1)
    checkpoint(table)
    remove_commits(table, VERSIONS)
    advance(behind)
    assert ([cursor.step() for _ in range(9)], log.refresh(), behind.version) == ([[]] * 9, 0, VERSIONS)
    (table / "_delta_log" / "_last_checkpoint").unlink()
    assert ([cursor.step() for _ in range(9)], log.refresh()) == ([[]] * 9, 0)
    log.append([data_batch(VERSIONS)])
    assert cursor.step() == [data_batch(VERSIONS)]
    assert commit_path(table, VERSIONS + 1).exists()


def test_an_append_whose_look_at_the_last_version_is_refused_lists_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = grown(tmp_path / "lake")
    log = MetadataLog.open(table.parent, disk=DISK)
    log.append([data_batch(VERSIONS)])

    def refuse(path: Path) -> bool:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    log.append([data_batch(VERSIONS + 1)])
    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(RefusedReadError, match="_delta_log can't be read: Input/output error"):
        log.append([data_batch(VERSIONS + 2)])
    monkeypatch.undo()
    assert MetadataLog.open(table.parent).end_offset == VERSIONS + 2
