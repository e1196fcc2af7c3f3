"""The file system interface of logs, which a simulation can replace."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

from kraftlake.replica_manager.logs.disk.open_files import DiskLogFile, OpenFiles
from kraftlake.runtime.whole_file import sync_folder, write_whole


class LogFile(Protocol):
    """An open file that grows at its end. Content is durable only after `sync`."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    def append(self, data: bytes | memoryview) -> None:
        """Write at the end."""

    def read(self, position: int, size: int) -> bytes:
        """Read up to `size` bytes from `position`, fewer only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Truncate the file to `size` bytes."""

    def sync(self) -> None:
        """Make the content durable."""

    def lock(self) -> bool:
        """Lock the file for this process until it is closed; returns False if another process holds the lock."""

    def close(self) -> None:
        """Close the file."""


class Files(Protocol):
    """The files of a log directory. Any call may raise OSError.

    A new, renamed or deleted name is durable only after `sync_folder`.
    """

    def open(self, path: str) -> LogFile:
        """Open a file; a missing one is created."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists."""

    def is_folder(self, path: str) -> bool:
        """Whether a folder exists."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""

    def make_folder(self, folder: str) -> None:
        """Create a folder, unless it exists."""

    def read(self, path: str) -> bytes:
        """Return the whole content of a file."""

    def write_whole(self, path: str, data: bytes, *, sync_name: bool = True) -> None:
        """Write or replace a file, durably and atomically.

        Without `sync_name` a power cut before `sync_folder` may leave the old file, or none.
        """

    def rename(self, path: str, new_path: str) -> None:
        """Rename a closed file, or a folder; a file at the new path is replaced."""

    def delete(self, path: str) -> None:
        """Delete a file; a missing one is no error."""

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its content; a missing one is no error."""

    def modified_ms(self, path: str) -> int:
        """The time of the last change of the content, in epoch ms."""

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Give a file another time of its last change, in epoch ms."""

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder durable."""


class DiskFiles:
    """`Files` on a disk."""

    def __init__(self) -> None:
        self._open = OpenFiles()

    def open(self, path: str) -> DiskLogFile:
        """Open a file; a missing one is created."""
        return self._open.open(path)

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists."""
        return Path(path).exists()

    def is_folder(self, path: str) -> bool:
        """Whether a folder exists."""
        return Path(path).is_dir()

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""
        return sorted(self._open.with_descriptors(lambda: os.listdir(folder)))  # noqa: PTH208 - names, not paths

    def make_folder(self, folder: str) -> None:
        """Create a folder, unless it exists."""
        Path(folder).mkdir(exist_ok=True)

    def read(self, path: str) -> bytes:
        """Return the whole content of a file."""
        return self._open.with_descriptors(Path(path).read_bytes)

    def write_whole(self, path: str, data: bytes, *, sync_name: bool = True) -> None:
        """Write a temporary file, fsync and rename it; fsync the folder if `sync_name`."""
        self._open.with_descriptors(lambda: write_whole(Path(path), [data], sync_name=sync_name))

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or folder."""
        self._open.rename(path, new_path)

    def delete(self, path: str) -> None:
        """Delete a file."""
        Path(path).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its content."""
        if Path(folder).exists():
            self._open.with_descriptors(lambda: shutil.rmtree(folder))

    def modified_ms(self, path: str) -> int:
        """The time of the last change of the content, in epoch ms."""
        return Path(path).stat().st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Give a file another time of its last change, in epoch ms."""
        os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder durable."""
        self._open.with_descriptors(lambda: sync_folder(Path(folder)))
