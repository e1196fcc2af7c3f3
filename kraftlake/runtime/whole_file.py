"""Atomic writes of files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kraftlake.runtime.errors import EnvironmentFaultError

PART: Final = ".part"
"""The suffix of a temporary file, after the target's own suffix. A killed process leaves it."""


def check_folder_of(target: Path) -> None:
    """Raise EnvironmentFaultError if the folder of a file to be written does not exist."""
    folder = target.absolute().parent
    if not folder.is_dir():
        raise EnvironmentFaultError(f"{target} can't be written: the folder {folder} does not exist.")


def write_readable(target: Path, parts: Iterable[bytes | memoryview]) -> int:
    """The same as `write_whole` for a file to be passed on: readable by others like any new file of its user.

    A file that is replaced keeps its mode. Raises EnvironmentFaultError where the disk refuses.
    """
    try:
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
        return write_whole(target, parts, mode=mode)
    except OSError as fault:
        raise EnvironmentFaultError(f"{target} can't be written: {fault.strerror or fault}.") from fault


def _umask() -> int:
    umask = os.umask(0o077)  # it can't be read alone: what another thread makes meanwhile is for its user alone
    os.umask(umask)
    return umask


def write_whole(
    target: Path, parts: Iterable[bytes | memoryview], *, sync_name: bool = True, mode: int | None = None
) -> int:
    """Write a temporary file beside `target`, fsync it, rename it, fsync the folder; returns the size in bytes.

    A file at `target` is replaced. Without `sync_name` the caller syncs the folder: until then, a power cut may leave
    the old file, or none. Only its user has access to the file, unless a `mode` is given. Raises OSError, and then
    leaves no file.
    """
    import tempfile  # most processes write no file

    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=PART)
    try:
        size = 0
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                with suppress(PermissionError):  # a FAT has one mode for all files
                    os.fchmod(descriptor, mode)
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
