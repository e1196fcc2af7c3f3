"""Where a benchmark's files lie."""

from __future__ import annotations

from pathlib import Path


def made_folder(text: str) -> Path:
    """The value of an option `--folder`, made where it is missing."""
    path = Path(text)
    path.mkdir(parents=True, exist_ok=True)
    return path
