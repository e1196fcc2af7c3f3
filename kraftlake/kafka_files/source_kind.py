"""What a SOURCE can be."""

from __future__ import annotations

from enum import Enum


class SourceKind(Enum):
    """The kinds of SOURCE that the commands take, told by content."""

    LAKE = "lake"
    DIRECTORY = "directory"
    SEGMENT = "segment"
    SNAPSHOT = "snapshot"
    ARCHIVE = "archive"
