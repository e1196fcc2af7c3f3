"""A folder to try commands of the docs in: the clone's samples are there, and what is written goes with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def beside_samples() -> Iterator[None]:
    """Work in such a folder."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("samples").symlink_to(ROOT / "samples")
        yield
