"""`make test-long`: what has passed does not run again, and the page has the sum of the parts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import ROOT
from tests.waiting import PATIENCE, wait_for

CONFTEST = """
import pytest
from tests.passed_earlier import deselect_passed

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    deselect_passed(config, items)
"""
TESTS = """
import os, time
from pathlib import Path
import pytest

@pytest.mark.xdist_group("group")
@pytest.mark.parametrize("name", ["a@b c"])
def test_sound(name):
    with Path("sound").open("a") as file:
        file.write(os.environ["KRAFTLAKE_SEED"] + " ")

@pytest.mark.xdist_group("group")
def test_that_waits():
    Path("waits").touch()
    while not Path("go on").exists():
        time.sleep(0.05)
    assert Path("mended").exists()
"""
WORDS = ["-n", "1", "--dist", "loadgroup", "--randomly-dont-reorganize", "-p", "no:cacheprovider"]
RUN = "import sys; from pathlib import Path; from tools.test_long import main; sys.exit(main(sys.argv[1:], Path.cwd()))"
STOPPED, FAILED = 2, 1


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KRAFTLAKE_SEED", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "docs").mkdir()
    for name, content in (("pytest.ini", "[pytest]\n"), ("conftest.py", CONFTEST), ("test_some.py", TESTS)):
        (tmp_path / name).write_text(content)
    return tmp_path


def begin(project: Path) -> subprocess.Popen[str]:
    """Start a part in a process group of its own, as a terminal does."""
    command = [sys.executable, "-c", RUN, *WORDS]
    return subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, text=True, start_new_session=True)


def end(part: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code of a part, and what it said."""
    said, _ = part.communicate(timeout=PATIENCE)
    return part.returncode, said


def test_a_run_that_is_stopped_or_in_which_tests_fail_goes_on_with_the_others(project: Path) -> None:
    page, seeds = project / "docs" / "test-long.md", project / "sound"
    part = begin(project)
    wait_for((project / "waits").exists)
    os.killpg(part.pid, signal.SIGINT)
    code, said = end(part)
    assert code == STOPPED
    assert "passed until now: 1; `make test-long` goes on with the others" in said
    assert not page.exists()

    (project / "go on").touch()
    code, said = end(begin(project))
    assert code == FAILED
    assert "FAILED test_some.py::test_that_waits" in said
    assert "passed in an earlier part, and not run again: 1" in said
    (seed,) = seeds.read_text().split()
    assert (
        f"`make test-long`: 1 failed, 1 passed, in 0 minutes on {os.cpu_count()} cores, seed {seed}" in page.read_text()
    )

    (project / "mended").touch()
    code, said = end(begin(project))
    assert code == 0
    assert f"seed {seed}: " in said
    assert "`make test-long`: 2 passed, in " in page.read_text()
    assert seeds.read_text().split() == [seed]

    assert end(begin(project))[0] == 0
    assert len(set(seeds.read_text().split())) == 2, "all had passed: another run, with a seed of its own"


def test_a_damaged_file_is_refused_in_a_sentence(project: Path) -> None:
    kept = project / "build" / "test-long" / "run.jsonl"
    kept.parent.mkdir(parents=True)
    for damaged in ("", "{}\n", '{"seed": "7"}\n{"test": "test_some'):
        kept.write_text(damaged)
        part = subprocess.run(
            [sys.executable, "-c", RUN, *WORDS], cwd=project, capture_output=True, text=True, check=False
        )
        assert (part.returncode, part.stdout) == (1, "")
        assert part.stderr == f"{kept} is damaged: remove it, and the next run begins anew.\n"
        assert kept.read_text() == damaged


def test_a_test_that_failed_and_is_there_no_more_is_not_counted(project: Path) -> None:
    (project / "go on").touch()
    assert end(begin(project))[0] == FAILED
    (project / "test_some.py").write_text(TESTS.replace("test_that_waits", "test_renamed"))
    (project / "mended").touch()
    assert end(begin(project))[0] == 0
    assert "`make test-long`: 2 passed, in " in (project / "docs" / "test-long.md").read_text()


def test_a_seed_begins_anew(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "go on").touch()
    assert end(begin(project))[0] == FAILED
    monkeypatch.setenv("KRAFTLAKE_SEED", "7")
    assert end(begin(project))[0] == FAILED
    assert (project / "sound").read_text().split()[1:] == ["7"]
