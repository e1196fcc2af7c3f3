"""kraftlake's wheel, built once a worker, and virtual environments that it is installed in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@attrs.frozen
class Install:
    """A virtual environment with the wheel and its dependencies, and a folder with the tests but not the package."""

    python: Path
    folder: Path

    def run(self, *words: object, timeout: float = 900) -> subprocess.CompletedProcess[str]:
        """Run its Python outside of the repository."""
        environment = {
            name: value for name, value in os.environ.items() if not re.match("PYTHONPATH$|(PY)?SPARK_", name)
        }
        return subprocess.run(
            [str(self.python), *map(str, words)],
            cwd=self.folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def kraftlake(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run its command."""
        return self.run(self.python.with_name("kraftlake"), *words)


def install(folder: Path, *packages: str | Path) -> Install:
    """Install packages in a new virtual environment: of the versions that constraints.txt names, or they name."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=300)
    made = Install(folder / "venv" / "bin" / "python", folder)
    chosen = {package.partition("==")[0] for package in map(str, packages) if "==" in package}
    constraints = (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines(keepends=True)
    kept = folder / "constraints.txt"
    kept.write_text("".join(line for line in constraints if line.partition("==")[0] not in chosen), "utf-8")
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint", kept)
    installed = made.run(*pip, *packages)
    assert installed.returncode == 0, installed.stderr
    shutil.copytree(REPOSITORY / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    for name in ("docs", "samples"):
        (folder / name).symlink_to(REPOSITORY / name)
    return made


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # A build in place would include what an earlier build left behind.
    source.mkdir()
    for package in ("kraftlake", "pyspark_kraft"):
        shutil.copytree(REPOSITORY / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / file, source)
    done = subprocess.run(
        [
            sys.executable, "-m", "pip", "wheel", str(source), "--no-deps", "--no-build-isolation", "--quiet",
            "--disable-pip-version-check", "--wheel-dir", str(folder),
        ],
        capture_output=True, text=True, timeout=300, check=False, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("kraftlake-*-py3-none-any.whl")
    return made
