"""A disk that refuses any one look or read of a lake is one sentence, and never an OSError."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.derived_tables import derived_tables
from kraftlake.metadata_log.maintenance.table_check import damaged_files, table_problems
from kraftlake.metadata_log.storage.location import folders_of, size_of
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader, open_reader
from kraftlake.runtime.errors import KraftlakeError, RefusedReadError
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.updating import update_by_job, writers_of
from kraftlake.tables.jobs import ALL
from tests.tables.sample_log import batches_between

_LOOKS: Final = ("stat", "iterdir", "read_bytes")
"""The methods of Path by which a lake is read, but for Arrow's own."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a snapshot, and with the tables of the job `all`."""
    lake = tmp_path_factory.mktemp("lakes") / "lake"
    lake_with_snapshots(lake)
    return lake


def lake_with_snapshots(place: Path) -> None:
    MetadataLog.create(place).append(batches_between(0, 200))
    update_by_job("all", place, snapshot_every_bytes=1_000)


def _raised(_: object, fault: KraftlakeError) -> None:
    raise fault


READS: Final[dict[str, Callable[[Path], Any]]] = {
    "log": lambda lake: [*MetadataLog.open(lake).batches(0, 50)],
    "no lake": lambda lake: MetadataLog.open(lake.parent),
    "snapshots": lambda lake: MetadataLog.open(lake).snapshots(),
    "source": lambda lake: image_at(open_reader(str(lake))[0], 180),
    "tables": lambda lake: derived_tables(lake, MetadataLog.open(lake)._state, on_fault=_raised),
    "covered": lambda lake: covered_by(LakeReader(MetadataLog.open(lake)), writers_of(ALL.tables)),
    "check": lambda lake: [*table_problems(lake / "log"), *damaged_files(lake / "log")],
}


@pytest.mark.parametrize("reads", READS)
def test_each_refused_look_is_a_sentence(lake: Path, monkeypatch: pytest.MonkeyPatch, reads: str) -> None:
    looks, refused = 0, -1

    def refuse(look: Callable[..., Any]) -> Callable[..., Any]:
        def looked(path: Path, *more: Any, **options: Any) -> Any:
            nonlocal looks
            if lake.parent in (path, *path.parents):
                looks += 1
                if looks == refused:
                    raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return look(path, *more, **options)

        return looked

    for name in _LOOKS:
        monkeypatch.setattr(Path, name, refuse(getattr(Path, name)))
    kept = _outcome(lambda: READS[reads](lake))
    assert looks > 0
    sentences = set()
    for refused in range(1, looks + 1):  # noqa: B007 - `looked` reads it
        looks = 0
        told = _outcome(lambda: READS[reads](lake))
        if told != kept:
            sentences.add(told)
    assert sentences, "a refused look is seen"
    assert {told for told in sentences if "Input/output error" not in told} == set()


def _outcome(read: Callable[[], Any]) -> str:
    """What was read, or the error."""
    try:
        return repr(read())
    except KraftlakeError as fault:
        return str(fault)


def test_what_a_disk_refuses_is_not_taken_for_missing(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.symlink_to(endless)
    with pytest.raises(RefusedReadError, match=r"endless can't be read: Too many levels of symbolic links\.$"):
        size_of(endless)
    with pytest.raises(RefusedReadError, match=r"endless can't be read: Too many levels of symbolic links\.$"):
        folders_of(endless)
    assert size_of(tmp_path / "missing") is None
    assert size_of(Path(__file__) / "below a file") is None
    assert folders_of(tmp_path / "missing") == folders_of(Path(__file__)) == []


def test_a_snapshot_that_cannot_be_looked_at_is_not_skipped(tmp_path: Path) -> None:
    lake_with_snapshots(tmp_path / "lake")
    assert MetadataLog.open(tmp_path / "lake").snapshots()
    file = next((tmp_path / "lake" / "snapshots").glob("*.parquet"))
    file.unlink()
    file.symlink_to(file)
    with pytest.raises(RefusedReadError, match=r"parquet can't be read: Too many levels"):
        MetadataLog.open(tmp_path / "lake").snapshots()
