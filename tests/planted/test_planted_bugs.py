"""Each planted bug is caught by the test that is named for it: `make test-long` plants them all, one copy at a time.

Every `make test` holds that the list is true of the code: each edit fits in exactly one place, each test is there.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.planted.bugs import BUGS, PlantedBug
from tests.wheel import copy_sources

ROOT = Path(__file__).resolve().parents[2]
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
COPIED = ("kraftlake", "pyspark_kraft", "tests")
IN_KERNELS = [bug for bug in BUGS if bug.file.startswith("kraftlake/kernels/")]
IN_PYTHON = [bug for bug in BUGS if bug not in IN_KERNELS]
TEST_FAILED = 1  # pytest's exit code; an error of collection has another


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_fits_in_one_place_and_its_test_is_there(bug: PlantedBug) -> None:
    assert (ROOT / bug.file).read_text("utf-8").count(bug.sound) == 1
    assert bug.sound != bug.planted
    path, _, name = bug.test.partition("::")
    assert not name or name in functions_of(ROOT / path)


def test_bugs_have_a_name_each() -> None:
    names = [bug.name for bug in BUGS]
    assert len(set(names)) == len(names)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what tests need, to plant bugs in."""
    folder = tmp_path_factory.mktemp("planted")
    for path in ROOT.iterdir():
        if path.name in COPIED:
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    return folder


def plant(folder: Path, bug: PlantedBug) -> None:
    place = folder / bug.file
    place.write_text(place.read_text("utf-8").replace(bug.sound, bug.planted), "utf-8")


def is_caught(folder: Path, bug: PlantedBug) -> None:
    pytest_ = ("pytest", "-q", "-x", "-n0", "-p", "no:cacheprovider", "-p", "no:randomly")
    done = python(folder, "-m", *pytest_, bug.test)
    assert done.returncode == TEST_FAILED, f"{bug.name} was not caught by {bug.test}:\n{done.stdout}\n{done.stderr}"
    assert " failed" in done.stdout, "and not by a test that ends with an error before it began"


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {"PYTHONPATH": str(folder), "KRAFTLAKE_TESTS": "quick", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=os.environ | own, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip


@pytest.mark.skipif(not LONG, reason="plants every bug: `make test-long`")
@pytest.mark.parametrize("bug", IN_PYTHON, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(copy: Path, bug: PlantedBug) -> None:
    place = copy / bug.file
    sound = place.read_text("utf-8")
    plant(copy, bug)
    try:
        is_caught(copy, bug)
    finally:
        place.write_text(sound, "utf-8")


@pytest.mark.skipif(not LONG, reason="compiles the kernels for each bug: `make test-long`")
@pytest.mark.parametrize("bug", IN_KERNELS, ids=lambda bug: bug.name)
def test_a_bug_that_is_planted_in_the_kernels_is_caught(tmp_path: Path, bug: PlantedBug) -> None:
    folder = tmp_path / "copy"
    copy_sources(folder, "tests")
    plant(folder, bug)
    built = python(folder, "setup.py", "-q", "build_ext", "--inplace")
    assert built.returncode == 0, built.stderr
    is_caught(folder, bug)
