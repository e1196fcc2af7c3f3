"""A disk that refuses any one look at a lake is one sentence, and never an OSError; what is written then is whole."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kraftlake.controller.quorum.followed_log import FollowedLog
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.lakes import is_lake
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.derived_tables import derived_tables
from kraftlake.metadata_log.maintenance.table_check import damaged_files, table_problems
from kraftlake.metadata_log.storage.location import folders_of, size_of
from kraftlake.replay.loader.fold import image_at
from kraftlake.replay.reading.open_reader import LakeReader, open_reader
from kraftlake.runtime.errors import KraftlakeError, RefusedReadError
from kraftlake.server.lake_upkeep import LakeUpkeep
from kraftlake.tables.catch_up.covered import covered_by
from kraftlake.tables.catch_up.updating import update_by_job, writers_of
from kraftlake.tables.jobs import ALL
from tests.at_least_one import at_least_one
from tests.tables.sample_log import batches_between

LONG: Final = os.environ.get("KRAFTLAKE_TESTS") == "long"
_LOOKS: Final = ("stat", "iterdir", "read_bytes", "unlink", "mkdir")
"""The methods of Path by which a lake is read and changed, but for Arrow's own."""
_BATCHES: Final = batches_between(0, 300)
_LAST: Final = _BATCHES[-1].last_offset


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with snapshots, the tables of the job `all`, and some commits that these do not cover yet."""
    lake = tmp_path_factory.mktemp("lakes") / "lake"
    log, half = MetadataLog.create(lake), len(_BATCHES) // 2
    log.append(_BATCHES[:half])
    update_by_job("all", lake, snapshot_every_bytes=1_000)
    for batch in _BATCHES[half:-1]:
        log.append([batch])
    return lake


class RefusingDisk:
    """Counts looks at what is below a folder, and refuses the one that is due."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder: Path | None = None
        self.looks = self.refused = 0
        for name in _LOOKS:
            monkeypatch.setattr(Path, name, self._refusing(getattr(Path, name)))

    def _refusing(self, look: Callable[..., Any]) -> Callable[..., Any]:
        def looked(path: Path, *more: Any, **options: Any) -> Any:
            if self.folder in (path, *path.parents):
                self.looks += 1
                if self.looks == self.refused:
                    raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
            return look(path, *more, **options)

        return looked

    def each(self, folder: Path, work: Callable[[], Any], most: int | None = None) -> Iterator[str]:
        """Do something, then again with one of its looks refused, for each or `most` of them; yields the outcomes."""
        self.refused = 0
        yield self._outcome(folder, work)
        looks = range(1, self.looks + 1)
        for refused in looks if most is None else random.sample(looks, min(most, len(looks))):
            self.refused = refused
            yield self._outcome(folder, work)

    def _outcome(self, folder: Path, work: Callable[[], Any]) -> str:
        self.folder, self.looks = folder, 0
        try:
            return repr(work())
        except KraftlakeError as fault:
            return str(fault)
        finally:
            self.folder = None


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> RefusingDisk:
    return RefusingDisk(monkeypatch)


def _raised(_: object, fault: KraftlakeError) -> None:
    raise fault


READS: Final[dict[str, Callable[[Path], Any]]] = {
    "log": lambda lake: [*MetadataLog.open(lake).batches(0, 50)],
    "no lake": lambda lake: MetadataLog.open(lake.parent),
    "snapshots": lambda lake: MetadataLog.open(lake).snapshots(),
    "source": lambda lake: image_at(open_reader(str(lake))[0], _LAST - 5),
    "controller": lambda lake: FollowedLog(MetadataLog.open(lake)).loader.last_offset,
    "tables": lambda lake: derived_tables(lake, MetadataLog.open(lake)._state, on_fault=_raised),
    "covered": lambda lake: covered_by(LakeReader(MetadataLog.open(lake)), writers_of(ALL.tables)),
    "check": lambda lake: [*table_problems(lake / "log"), *damaged_files(lake / "log")],
}


@pytest.mark.parametrize("reads", READS)
def test_each_refused_look_is_a_sentence(lake: Path, disk: RefusingDisk, reads: str) -> None:
    kept, *others = disk.each(lake.parent, lambda: READS[reads](lake))
    assert others
    assert [outcome for outcome in others if outcome != kept and "Input/output error" not in outcome] == []
    assert set(others) - {kept}


def _create(lake: Path) -> None:
    if not is_lake(lake.parent / "new"):
        MetadataLog.create(lake.parent / "new")


def _append(lake: Path) -> None:
    log = MetadataLog.open(lake)
    if log.end_offset <= _LAST:
        log.append(_BATCHES[-1:])


WRITES: Final[dict[str, Callable[[Path], Any]]] = {
    "create": _create,
    "append": _append,
    "tables": lambda lake: update_by_job("all", lake, snapshot_every_bytes=1_000),
    "upkeep": lambda lake: LakeUpkeep(lake).run(),
}


@pytest.mark.parametrize("writes", WRITES)
def test_after_a_refused_look_the_same_again_makes_the_same(
    lake: Path, disk: RefusingDisk, writes: str, tmp_path: Path
) -> None:
    folder = tmp_path / "lakes"

    def write() -> None:
        shutil.copytree(lake.parent, folder)
        WRITES[writes](folder / "lake")

    kept = None
    for outcome in at_least_one(disk.each(folder, write, 40 if LONG else 4)):
        assert outcome == "None" or "Input/output error" in outcome
        WRITES[writes](folder / "lake")
        update_by_job("all", folder / "lake")
        rows = _row_counts(folder / "lake")
        kept = kept or rows
        assert rows == kept
        shutil.rmtree(folder)


def _row_counts(lake: Path) -> dict[str, int]:
    """The number of rows of each table of a lake."""
    states = [read_table(lake / name) for name in ("log", *ALL.tables)]
    counts = [[file.statistics for file in state.files.values()] for state in states]
    return {
        state.path.name: sum(one.record_count or 0 for one in some if one is not None)
        for state, some in zip(states, counts, strict=True)
    }


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


def test_a_snapshot_that_cannot_be_looked_at_is_not_skipped(lake: Path, tmp_path: Path) -> None:
    shutil.copytree(lake, tmp_path / "lake")
    assert MetadataLog.open(tmp_path / "lake").snapshots()
    file = next((tmp_path / "lake" / "snapshots").glob("*.parquet"))
    file.unlink()
    file.symlink_to(file)
    with pytest.raises(RefusedReadError, match=r"parquet can't be read: Too many levels"):
        MetadataLog.open(tmp_path / "lake").snapshots()
