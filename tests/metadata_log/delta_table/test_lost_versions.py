"""Versions of a table that were lost, that only look lost, and that a hint promises although they never were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraftlake.metadata_log.delta_table import delta_log
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.delta_table.table_state import commit_path
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.checkpointing import checkpoint_if_due
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.runtime.errors import LakeError
from tests.metadata_log.delta_table.test_delta_log import VERSIONS, checkpoint, grown
from tests.metadata_log.log_batches import UnsyncedDisk, data_batch

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
DISK = UnsyncedDisk()
MISSING = r"Version 4 of the Delta table .* is missing although a later one exists"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return grown(tmp_path / "lake")


@pytest.mark.parametrize("lost", range(1, 6))
def test_commits_lost_in_a_row_behind_a_checkpoint_are_named_to_readers(table: Path, lost: int) -> None:
    checkpoint(table, 3)
    for version in range(4, 4 + lost):
        commit_path(table, version).unlink()
    for listed in (False, True):
        with pytest.raises(LakeError, match=MISSING):
            read_table(table, listed=listed)


def test_nothing_is_appended_into_a_hole_that_is_longer_than_what_follows_it(table: Path) -> None:
    checkpoint(table, 3)
    for version in range(4, VERSIONS):
        commit_path(table, version).unlink()
    log = MetadataLog.open(table.parent, disk=DISK)
    assert log.end_offset == 3
    with pytest.raises(LakeError, match=MISSING):
        log.append([data_batch(3)])
    with pytest.raises(LakeError, match=MISSING):
        log.append([], committed_to=3)
    with pytest.raises(LakeError, match=MISSING):
        read_table(table, listed=True)
    assert not commit_path(table, 4).exists()


def test_a_hint_ahead_of_the_log_is_a_hint_for_writers_too(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(table, 9).with_name("_last_checkpoint").write_text('{"version":99}')
    log = MetadataLog.open(table.parent, disk=DISK)
    log.append([data_batch(VERSIONS)])

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a listing")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta_log, "list_log", refuse)
        for offset in range(VERSIONS + 1, VERSIONS + 4):
            assert log.refresh() == 0
            log.append([data_batch(offset)])
    assert len(list(log.tail(0, timeout=0))) == VERSIONS + 4


def test_what_was_committed_during_a_listing_is_not_taken_for_lost(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = MetadataLog.open(table.parent, disk=DISK)
    writer.append([data_batch(VERSIONS)])
    listings: list[int] = []
    list_log = delta_log.list_log

    def while_others_commit(log: Path, *, after: int = -1) -> object:
        writer.append([data_batch(writer.end_offset)])
        listings.append(writer.version)
        return list_log(log, after=after)

    monkeypatch.setattr(delta_log, "list_log", while_others_commit)
    assert read_table(table).version == listings[-1]
    assert len(listings) == 2


def test_what_was_committed_while_names_were_looked_for_is_not_taken_for_lost(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint(table)
    writer = MetadataLog.open(table.parent, disk=DISK)
    writer.append([data_batch(VERSIONS)])
    read_hinted = delta_log._read_hinted

    def while_others_commit(path: Path) -> object:
        state = read_hinted(path)
        for _ in range(3):
            writer.append([data_batch(writer.end_offset)])
        return state

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a listing")

    monkeypatch.setattr(delta_log, "_read_hinted", while_others_commit)
    monkeypatch.setattr(delta_log, "list_log", refuse)
    assert read_table(table).version == writer.version


@pytest.mark.parametrize("upkeep", [False, True])
def test_a_lake_is_opened_and_read_while_another_process_appends(tmp_path: Path, upkeep: bool) -> None:
    lake = tmp_path / "lake"
    log = MetadataLog.create(lake, disk=DISK)
    for offset in range(2_000 if LONG else 100):
        log.append([data_batch(offset)])
    code = """
import sys
from kraftlake.metadata_log.log import MetadataLog
from tests.metadata_log.log_batches import data_batch
log = MetadataLog.open(sys.argv[1], durability="os")
while True:
    log.append([data_batch(log.end_offset)])
    if log.end_offset % 10 == 0:
        print(log.end_offset, flush=True)
"""
    command = [sys.executable, "-c", code, str(lake)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            for _ in range(12 if LONG else 3):  # the writer gets far ahead, and each opening reads all versions
                if upkeep:
                    checkpoint_if_due(lake / "log", DISK, UpkeepPolicy(checkpoint_after=20))
                opened = MetadataLog.open(lake)
                assert opened.end_offset == opened.version
                newest = range(opened.end_offset - 20, opened.end_offset)
                assert opened.rows(newest[0], columns=["offset"]).column("offset").to_pylist() == list(newest)
            assert writer.poll() is None
            assert opened.end_offset > log.end_offset
        finally:
            writer.kill()
