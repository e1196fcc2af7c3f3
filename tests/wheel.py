"""kraftlake's wheel, built once a run, copies of its sources, and virtual environments that it is installed in."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@attrs.frozen
class Install:
    """A virtual environment with the wheel and its dependencies, and a folder with the tests but not the package."""

    python: Path
    folder: Path

    def run(self, *words: object, timeout: float = 900, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run its Python outside of the repository."""
        environment = {
            name: value for name, value in os.environ.items() if not re.match("PYTHONPATH$|(PY)?SPARK_", name)
        }
        return subprocess.run(
            [str(self.python), *map(str, words)],
            cwd=self.folder, env=environment | variables, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def pip(self, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the pip of this process on it; one of its own would take half as long as all else to install."""
        pip = ("-m", "pip", "--disable-pip-version-check", "--python", self.python)
        return attrs.evolve(self, python=Path(sys.executable)).run(*pip, *words, **variables)

    def kraftlake(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run its command."""
        return self.run(self.python.with_name("kraftlake"), *words)


def install(folder: Path, *packages: str | Path, python: str | Path = sys.executable, **variables: str) -> Install:
    """Install packages in a new virtual environment: of the versions that constraints.txt names, or they name."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder / "venv"], check=True, timeout=300)
    made = Install(folder / "venv" / "bin" / "python", folder)
    chosen = {package.partition("==")[0] for package in map(str, packages) if "==" in package}
    constraints = (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines(keepends=True)
    kept = folder / "constraints.txt"
    kept.write_text("".join(line for line in constraints if line.partition("==")[0] not in chosen), "utf-8")
    installed = made.pip("install", "--quiet", "--no-compile", "--constraint", kept, *packages, **variables)
    assert installed.returncode == 0, installed.stderr
    shutil.copytree(REPOSITORY / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    for name in ("README.md", "docs", "samples", "tools"):
        (folder / name).symlink_to(REPOSITORY / name)
    return made


def here(*words: object) -> str:
    """What the same command prints in this environment, where all extras are installed."""
    done = subprocess.run(
        [sys.executable, "-m", "kraftlake.cli", *map(str, words)],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    return done.stdout


def copy_sources(folder: Path, *others: str) -> Path:
    """Copy what kraftlake is built from, and other folders of the repository, into a new folder."""
    folder.mkdir()
    unwanted = shutil.ignore_patterns("__pycache__", "*.so", "*.c")
    for name in ("kraftlake", "pyspark_kraft", "build_backend", "tools", *others):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=unwanted)
    for file in ("pyproject.toml", "setup.py", "MANIFEST.in", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / file, folder)
    return folder


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder that the first worker of this run to ask for it has made."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            make(folder)
    return folder


def left_by_earlier_builds(source: Path) -> tuple[Path, Path]:
    """Files in the sources that the wheel is built of: of a build for the checkout, and of an earlier wheel."""
    left = Path(f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}", "kraftlake", "left.py")
    return source / "build" / left, source / "build" / "wheel" / left


def quick_compiler(compiler: Path) -> dict[str, str]:
    """The environment of a build that does not optimise, which takes most of it; the long profile does."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None or os.environ.get("KRAFTLAKE_TESTS") == "long":
        return {}
    compiler.write_text(f'#!/bin/sh\nexec {found} "$@" -O0\n')
    compiler.chmod(0o755)
    return {"CC": str(compiler)}


def build_wheel(folder: Path) -> None:
    source = copy_sources(folder.with_suffix(".source"))
    for path in left_by_earlier_builds(source):
        path.parent.mkdir(parents=True)
        path.write_text("LEFT = True\n")
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", str(source), "--no-deps", "--no-build-isolation", "--quiet",
            "--disable-pip-version-check", "--wheel-dir", str(folder),
        ],
        capture_output=True, text=True, timeout=600, check=False, cwd=source,
        env=os.environ | quick_compiler(folder.with_suffix(".cc")),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (made,) = made_once(tmp_path_factory, "wheel", build_wheel).glob("kraftlake-*.whl")
    return made
