"""The site of the documentation, built once a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.wheel import REPOSITORY, made_once


def built_site(factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, beside that of its pages in Markdown."""
    return made_once(factory, "docs", _build) / "site"


def _build(folder: Path) -> None:
    command = [sys.executable, "-m", "tools.docs_site", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
