"""The kinds of SOURCE."""

from __future__ import annotations

from enum import Enum
from pathlib import Path


class SourceKind(Enum):
    """The kinds of SOURCE that the commands accept, recognised by content."""

    LAKE = "lake"
    DIRECTORY = "directory"
    SEGMENT = "segment"
    SNAPSHOT = "snapshot"
    ARCHIVE = "archive"


def has_lake_log(folder: str | Path) -> bool:
    """Whether a folder is a lake: has a Delta table `log/`; raises OSError."""
    return Path(folder, "log", "_delta_log").is_dir()
