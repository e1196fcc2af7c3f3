"""One wheel for each Python that pyproject.toml names, and an installation where no C compiler is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wheel import REPOSITORY, Install, copy_sources, here, install

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
SAMPLE = REPOSITORY / "samples" / "kafka-4.4" / "log" / "__cluster_metadata-0"
COMMANDS = (
    ("image", SAMPLE, "--json"),
    ("events", SAMPLE, "--json"),
    ("log", SAMPLE, "--json"),
    ("verify", SAMPLE, "--json"),
    ("metrics", SAMPLE, "--json"),
)

pytestmark = [
    pytest.mark.xdist_group("bare install"),
    pytest.mark.skipif(not LONG, reason="make test-long: each installation is a minute"),
]


def claimed() -> list[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(project["classifiers"]))


def found(version: str) -> Path:
    """A Python of this version: on PATH, or of pyenv, whose commands on PATH run the chosen ones alone."""

    def candidates() -> Iterator[Path]:
        yield Path(sys.executable)
        for folder in os.environ["PATH"].split(os.pathsep):
            yield Path(folder) / f"python{version}"
        root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
        yield from sorted(root.glob(f"versions/{version}.*/bin/python{version}"))

    for candidate in candidates():
        if candidate.exists():
            command = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
            if subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == version:
                return candidate
    pytest.fail(f"pyproject.toml says that kraftlake runs on Python {version}, and there is none here to try it on")


def prints_the_same(made: Install) -> None:
    for words in COMMANDS:
        done = made.kraftlake(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == here(*words)


def test_pythons_are_named() -> None:
    assert "3.11" in claimed()


@pytest.mark.parametrize("version", claimed())
def test_the_wheel_runs_on_each_python_that_is_named(version: str, wheel: Path, tmp_path: Path) -> None:
    prints_the_same(install(tmp_path, wheel, python=found(version)))


def test_without_a_compiler_pip_gets_one_for_the_build(tmp_path: Path) -> None:
    source = copy_sources(tmp_path / "source")
    (tmp_path / "home").mkdir()
    made = install(tmp_path, source, PATH=str(tmp_path), HOME=str(tmp_path / "home"), CC="")
    prints_the_same(made)
    assert made.run("-c", "import ziglang").returncode != 0
