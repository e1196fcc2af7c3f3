"""The few writes that the log asks of a disk, in one class, so that a test can put a forgetful disk in its place."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600
"""Payloads hold SCRAM keys and sensitive configs: a lake is its owner's alone."""


class Disk:
    """A local disk. Nothing written, linked or made is sure to outlive a power cut before the matching fsync."""

    def make_folder(self, path: Path) -> None:
        """Make a folder for its owner only; one that is there already is left as it is."""
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        """Write a new file; raises FileExistsError where there is one."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            view = memoryview(data).cast("B")
            while view:
                view = view[file.write(view) or 0 :]

    def fsync(self, path: Path) -> None:
        """Make a file's content durable, or a folder's entries."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name; raises FileExistsError where the name is taken. This is the compare-and-set."""
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        """Take a name away; one that is gone is no fault."""
        path.unlink(missing_ok=True)
