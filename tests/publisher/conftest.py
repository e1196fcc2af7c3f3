"""Fixtures for the tests of publishers."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Where a lake can be made: its folder is not there yet, the one it lies in is."""
    folder = tmp_path / "lakes"
    folder.mkdir()
    return folder / "lake"
