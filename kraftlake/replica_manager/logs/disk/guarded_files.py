"""The files of a log directory; the first failed call takes the directory offline."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import attrs

from kraftlake.replica_manager.errors import KafkaStorageError
from kraftlake.replica_manager.logs.disk.files import Files, LogFile
from kraftlake.replica_manager.logs.disk.open_files import NO_DESCRIPTOR_LEFT

T = TypeVar("T")


@attrs.define(eq=False)
class GuardedFiles:
    """`Files` of one log directory: an OSError goes to `on_failure`, and is raised as KafkaStorageError.

    If the process has no descriptor left, the error is only raised: the directory is sound. After any other error no
    call is made: data lost by a failed fsync must not count as durable after the next one. Source:
    org.apache.kafka.storage.internals.log.LogDirFailureChannel.
    """

    _files: Files
    directory: str
    on_failure: Callable[[str, OSError], None]
    failed: bool = attrs.field(default=False, init=False)

    def run(self, what: str, path: str, call: Callable[[], T]) -> T:
        """Return the result of a call; `what` is the verb in the error message."""
        if self.failed:
            raise KafkaStorageError(f"{path} is not {what}: the log directory {self.directory} is offline.")
        try:
            return call()
        except OSError as error:
            if error.errno in NO_DESCRIPTOR_LEFT:
                raise KafkaStorageError(
                    f"{path} can't be {what}: this process, or the machine, has as many files and connections open as "
                    f"it may. Raise the limit (ulimit -n), or lower max.connections."
                ) from error
            self.failed = True
            self.on_failure(self.directory, error)
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise KafkaStorageError(
                f"{path} can't be {what}: {reason}. The log directory {self.directory} is offline."
            ) from error

    def open(self, path: str) -> LogFile:
        """Open a file; a missing one is created."""
        return _GuardedFile(self, path, self.run("opened", path, lambda: self._files.open(path)))

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists."""
        return self.run("read", path, lambda: self._files.exists(path))

    def is_folder(self, path: str) -> bool:
        """Whether a folder exists."""
        return self.run("read", path, lambda: self._files.is_folder(path))

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""
        return self.run("read", folder, lambda: self._files.names(folder))

    def make_folder(self, folder: str) -> None:
        """Create a folder, unless it exists."""
        self.run("made", folder, lambda: self._files.make_folder(folder))

    def read(self, path: str) -> bytes:
        """Return the whole content of a file."""
        return self.run("read", path, lambda: self._files.read(path))

    def write_whole(self, path: str, data: bytes, *, sync_name: bool = True) -> None:
        """Write or replace a file, durably and atomically."""
        self.run("written", path, lambda: self._files.write_whole(path, data, sync_name=sync_name))

    def rename(self, path: str, new_path: str) -> None:
        """Rename a file or folder."""
        self.run("renamed", path, lambda: self._files.rename(path, new_path))

    def delete(self, path: str) -> None:
        """Delete a file."""
        self.run("deleted", path, lambda: self._files.delete(path))

    def delete_folder(self, folder: str) -> None:
        """Delete a folder with its content."""
        self.run("deleted", folder, lambda: self._files.delete_folder(folder))

    def modified_ms(self, path: str) -> int:
        """The time of the last change of the content, in epoch ms."""
        return self.run("read", path, lambda: self._files.modified_ms(path))

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Give a file another time of its last change, in epoch ms."""
        self.run("written", path, lambda: self._files.set_modified_ms(path, time_ms))

    def sync_folder(self, folder: str) -> None:
        """Make the names in a folder durable."""
        self.run("made durable", folder, lambda: self._files.sync_folder(folder))


@attrs.define(eq=False)
class _GuardedFile:
    _files: GuardedFiles
    _path: str
    _file: LogFile

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, data: bytes | memoryview) -> None:
        self._files.run("written", self._path, lambda: self._file.append(data))

    def read(self, position: int, size: int) -> bytes:
        return self._files.run("read", self._path, lambda: self._file.read(position, size))

    def truncate(self, size: int) -> None:
        self._files.run("cut", self._path, lambda: self._file.truncate(size))

    def sync(self) -> None:
        self._files.run("made durable", self._path, self._file.sync)

    def lock(self) -> bool:
        return self._files.run("locked", self._path, self._file.lock)

    def close(self) -> None:
        if self._files.failed:
            with suppress(OSError):
                self._file.close()
        else:
            self._files.run("closed", self._path, self._file.close)
