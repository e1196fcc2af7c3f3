"""A file that is written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kraftlake.runtime.errors import EnvironmentFaultError

PART: Final = ".part"
"""The suffix of a file that is being written: that of the target comes first. A kill leaves it."""


def check_folder_of(target: Path) -> None:
    """Raise EnvironmentFaultError where the folder of a file that is to be written does not exist."""
    folder = target.absolute().parent
    if not folder.is_dir():
        raise EnvironmentFaultError(f"{target} can't be written: the folder {folder} does not exist.")


def write_whole(target: Path, parts: Iterable[bytes | memoryview], *, sync_name: bool = True) -> int:
    """Write a temporary file beside `target`, fsync it, rename it, fsync the folder; returns the size in bytes.

    A file at `target` is replaced. Without `sync_name` the folder is left to the caller: until that is synced, a power
    cut may leave the old file, or none. Raises OSError, and leaves nothing behind then.
    """
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=PART)
    try:
        size = 0
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                size += file.write(part)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
        if sync_name:
            sync_folder(target.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return size


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
