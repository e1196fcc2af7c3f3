"""kraftlake's wheel, built once a worker."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


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
