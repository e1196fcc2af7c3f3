"""A lake of the sample log with every derived table, made once, for the pages that ask one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kraftlake.replay.imports.import_log import import_source
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import TABLES
from tests.tables.sample_log import SAMPLE
from tests.wheel import made_once


def make_sample_lake(path: Path) -> None:
    """Make the lake: `kraftlake import` and `kraftlake tables`."""
    import_source(SAMPLE, path)
    update_tables(path, TABLES)


@pytest.fixture(scope="session")
def sample_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one lake, which tests read."""
    return made_once(tmp_path_factory, "lake-of-docs", make_sample_lake)


@pytest.fixture
def own_lake(sample_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, `LAKE` in the current folder."""
    shutil.copytree(sample_lake, tmp_path / "LAKE")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "LAKE"
