"""The next run of the same lake removes the folder of a killed run, and no other folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftlake.generate import unfinished as module
from kraftlake.generate.lake import generate_lake
from kraftlake.generate.plan import Plan
from kraftlake.generate.unfinished import unfinished

SMALL = Plan(topics=1, records=0, patterns=())

HANGS = """
import sys, time
from pathlib import Path
from kraftlake.generate.unfinished import unfinished
with unfinished(Path(sys.argv[1])) as folder:
    (folder / "half").touch()
    print(folder.name, flush=True)
    time.sleep(3600)
"""


def test_the_next_run_removes_the_folder_of_a_killed_run(tmp_path: Path) -> None:
    lake = tmp_path / "[a] lake*"
    with subprocess.Popen([sys.executable, "-c", HANGS, str(lake)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        generate_lake(lake, SMALL)
        assert {path.name for path in tmp_path.iterdir()} == {name, lake.name}, "a run that lives keeps its folder"
        process.kill()
    with unfinished(lake):
        assert not (tmp_path / name).exists()
    assert [path.name for path in tmp_path.iterdir()] == [lake.name]


def test_the_remains_of_another_lake_are_not_removed(tmp_path: Path) -> None:
    for name in (".other.1.unfinished", ".lake.1.discarded", "lake.1.unfinished", ".lake.1.unfinished"):
        (tmp_path / name).mkdir()
    with unfinished(tmp_path / "lake"):
        assert not (tmp_path / ".lake.1.unfinished").exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        ".other.1.unfinished",
        ".lake.1.discarded",
        "lake.1.unfinished",
    }


def test_a_folder_that_another_run_removed_is_created_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def taken_once(self: Path, mode: int = 0o777) -> None:
        make(self, mode)
        made.append(self)
        if len(made) == 1:
            self.rmdir()

    make = Path.mkdir
    monkeypatch.setattr(module.Path, "mkdir", taken_once)
    with unfinished(tmp_path / "lake") as folder:
        assert [folder] == made[1:] == [*tmp_path.iterdir()]
