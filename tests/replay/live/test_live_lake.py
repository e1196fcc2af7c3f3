"""The batches of a lake that other handles append to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.live.open_live import open_live
from kraftlake.replay.queries.source import LogSource
from kraftlake.runtime.errors import LakeError, UsageError
from tests.replay.made_logs import no_op, small_log


def lake_of(path: Path) -> MetadataLog:
    log = MetadataLog.create(path, cluster_id="made", durability="os")
    log.append(small_log())
    return log


def test_each_append_comes_once_and_the_reader_stays_as_it_was(tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake")
    live = open_live(LogSource.open(tmp_path / "lake"), poll=0.1)
    end = log.end_offset
    for offset in (end, end + 1):
        assert live.step() == []
        log.append([no_op(offset, epoch=3)])
        assert live.step() == [no_op(offset, epoch=3)]
    assert (live.seen_to, live.reader.end_offset, live.trouble) == (end + 2, end, None)
    live.close()
    live.close()


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "replaced"])
def test_a_lake_that_was_deleted_or_replaced_ends_the_watch(tmp_path: Path, again: bool) -> None:
    log = lake_of(tmp_path / "lake")
    log.append([no_op(log.end_offset, epoch=3)])
    live = open_live(LogSource.open(tmp_path / "lake"), poll=0.1)
    assert live.step() == []
    shutil.rmtree(tmp_path / "lake")
    if again:
        other = lake_of(tmp_path / "lake")
        for _ in range(3):  # versions that the old one did not have
            other.append([no_op(other.end_offset, epoch=3)])
    with pytest.raises(LakeError, match="was deleted or replaced"):
        live.step()


def test_a_lake_has_no_use_for_options_of_directories(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake")
    with pytest.raises(UsageError, match="is a lake"):
        open_live(LogSource.open(tmp_path / "lake"), poll=0.1, include_uncommitted=True)
