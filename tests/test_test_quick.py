"""`make test`: what fails once by chance is run again and named, and nothing else becomes green."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.test_quick import main, without_group

WORKERS = ["-n", "1", "--dist", "loadgroup"]


def project(folder: Path, tests: str) -> Path:
    """A folder with a module of tests."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_some.py").write_text(f"import random, pytest\nfrom pathlib import Path\n{tests}")
    return folder


def test_a_test_that_passes_alone_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tests = """
@pytest.mark.xdist_group("group")
@pytest.mark.parametrize("name", ["a@b c"])
def test_once(name):
    ran = Path("ran")
    seeds = ran.read_text() if ran.exists() else ""
    seed = str(random.random())
    ran.write_text(seeds + seed)
    assert seeds == seed

def test_sound():
    with Path("sound").open("a") as file:
        file.write("ran")
"""
    assert main(WORKERS, project(tmp_path, tests)) == 0
    assert (tmp_path / "sound").read_text() == "ran"
    assert "PASSED ONLY ALONE, and so to be mended:\n  test_some.py::test_once[a@b c]" in capfd.readouterr().out


def test_a_test_that_fails_again_fails(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([], project(tmp_path, "def test_wrong():\n    assert not 1\n")) == 1
    said = capfd.readouterr().out
    assert said.count("1 failed in") == 2
    assert "PASSED ONLY ALONE" not in said


def test_more_failures_than_chance_explains_are_not_repeated(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tests = "".join(f"def test_{number}():\n    assert not 1\n" for number in range(4))
    assert main([], project(tmp_path, tests)) == 1
    assert "run again" not in capfd.readouterr().out


@pytest.mark.parametrize(("tests", "code"), [("def test_sound(): pass", 0), ("import missing_module", 2)])
def test_the_exit_code_is_that_of_pytest(tmp_path: Path, tests: str, code: int) -> None:
    assert main([], project(tmp_path, tests)) == code


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("t.py::test", "t.py::test"),
        ("t.py::test@group", "t.py::test"),
        ("t.py::test[a@b]", "t.py::test[a@b]"),
        ("t.py::test[a@b]@t.py", "t.py::test[a@b]"),
    ],
)
def test_groups_are_no_part_of_a_name(nodeid: str, name: str) -> None:
    assert without_group(nodeid) == name
