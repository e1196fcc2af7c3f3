"""Disks that can't hold a lake are refused before anything is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraftlake.metadata_log.append.creation import Contents
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.metadata_log.storage.location import Location
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import LakeError
from tests.metadata_log.log_batches import data_batch


class FileSystem(Disk):
    """A file system that answers a link with an error."""

    def __init__(self, code: int) -> None:
        super().__init__("os")
        self._code = code

    def link(self, source: Location, target: Location) -> None:
        raise OSError(self._code, os.strerror(self._code), str(source), None, str(target))


def never_read() -> Iterator[RecordBatch]:
    raise AssertionError("nothing is read of what can't be written")
    yield


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
@pytest.mark.parametrize("exists", [False, True])
def test_a_file_system_without_links_is_refused_and_left_as_it_was(tmp_path: Path, code: int, exists: bool) -> None:
    lake = tmp_path / "lake"
    if exists:
        lake.mkdir()
    with pytest.raises(LakeError, match="makes no hard links"):
        MetadataLog.create(lake, "c", disk=FileSystem(code), contents=Contents(batches=never_read()))
    assert lake.exists() == exists
    assert not list(tmp_path.rglob("*/*"))
    with pytest.raises(LakeError, match="makes no hard links"):
        MetadataLog.create(lake, "c", disk=FileSystem(code))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_lake_that_was_copied_there_gets_no_record(tmp_path: Path) -> None:
    MetadataLog.create(tmp_path, "c")
    log = MetadataLog.open(tmp_path, disk=FileSystem(errno.EPERM))
    with pytest.raises(LakeError, match="makes no hard links"):
        log.append([data_batch(0)])
    assert MetadataLog.open(tmp_path).end_offset == 0
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob(".*.tmp"))


def test_another_fault_of_the_disk_is_said_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="No space left on device"):
        MetadataLog.create(tmp_path / "lake", "c", disk=FileSystem(errno.ENOSPC))
