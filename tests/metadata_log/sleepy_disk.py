"""A disk whose writer sleeps between a data file and its commit, while others vacuum the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kraftlake.metadata_log.delta_table.commit import VacuumedFileError, now_ms
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.metadata_log.maintenance.upkeep_policy import LONGEST_COMMIT_MS, UpkeepPolicy
from kraftlake.metadata_log.maintenance.vacuum import vacuum
from kraftlake.metadata_log.storage.disk import Disk, Durability
from kraftlake.runtime.clock import ManualClock

MINUTE = 60_000
POLICY = UpkeepPolicy(orphan_age_ms=LONGEST_COMMIT_MS, compact_from=2)


class SleepyDisk(Disk):
    """A disk whose writer sleeps, once, behind a data file; then the rest of the world's vacuum runs."""

    def __init__(self, lake: Path, durability: Durability = "os") -> None:
        super().__init__(durability)
        self.lake = lake
        self.clock = ManualClock(now_ms())
        self.sleeps_ms = 0
        self.behind = "write"
        self.vacuums = True

    def write(self, path: Path, data: bytes | memoryview) -> None:  # type: ignore[override]
        super().write(path, data)
        self._may_sleep("write", path)

    def fsync_all(self, paths: Sequence[Path]) -> None:  # type: ignore[override]
        super().fsync_all(paths)
        self._may_sleep("fsync", paths[0])

    def _may_sleep(self, behind: str, path: Path) -> None:
        if path.suffix == ".parquet" and behind == self.behind and self.sleeps_ms:
            self.clock.advance(self.sleeps_ms)
            self.sleeps_ms = 0
            if self.vacuums:
                vacuum(path.parent, self, POLICY)

    def is_whole(self) -> bool:
        """Whether each file that the tables name is there."""
        tables = [read_table(folder) for folder in self.lake.iterdir() if folder.is_dir()]
        return all((table.path / name).exists() for table in tables for name in table.files)


def refused(disk: SleepyDisk, write: Callable[[], object], *, minutes: int = 120) -> None:
    """A write whose file goes is refused in one sentence, and what was there is there; the next try is made."""
    disk.sleeps_ms = minutes * MINUTE
    with pytest.raises(VacuumedFileError, match=rf"is gone: it was written {minutes} minutes ago.*try again\.$"):
        write()
    assert disk.is_whole()
    write()
    assert disk.is_whole()
