"""Log files on a disk.

A broker may have more files than a process may have descriptors: the files share the descriptors.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import attrs

NO_DESCRIPTOR_LEFT: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""The errors of a process, or a machine, at its limit of open files."""
_CLOSED_AT_ONCE: Final = 16
"""The number of descriptors closed when none is left: a call may need several."""
T = TypeVar("T")


@attrs.define(eq=False)
class DiskLogFile:
    """A `LogFile` on a disk; the first call after the loss of its descriptor reopens it."""

    _files: OpenFiles
    path: str
    size: int = 0
    descriptor: int = attrs.field(init=False, default=-1)
    """The file descriptor, −1 without one."""
    users: int = attrs.field(init=False, default=0)
    """The number of calls that need the descriptor."""
    is_closed: bool = attrs.field(init=False, default=False)

    def append(self, data: bytes | memoryview) -> None:
        """Append data; the next append cuts off the remains of a failed one."""
        view, position = memoryview(data), self.size
        with self._files.descriptor_of(self) as descriptor:
            while view:
                written = os.pwrite(descriptor, view, position)
                view, position = view[written:], position + written
        self.size = position

    def read(self, position: int, size: int) -> bytes:
        """Read up to `size` bytes from `position`."""
        with self._files.descriptor_of(self) as descriptor:
            return os.pread(descriptor, max(0, min(size, self.size - position)), position)

    def truncate(self, size: int) -> None:
        """Truncate the file."""
        with self._files.descriptor_of(self) as descriptor:
            os.ftruncate(descriptor, size)
        self.size = size

    def sync(self) -> None:
        """Make the content durable; a write that failed in the background fails this call, whatever the descriptor."""
        with self._files.descriptor_of(self) as descriptor:
            os.fdatasync(descriptor)

    def lock(self) -> bool:
        """Lock the file for this process, as Kafka does."""
        with self._files.descriptor_of(self) as descriptor:
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    return False
                raise
        self._files.keep_descriptor(self)
        return True

    def close(self) -> None:
        """Close the file; a later call fails."""
        self._files.close(self)


class OpenFiles:
    """The files of log directories; at most `most` have a descriptor: the most recently used ones.

    By default `most` is half of the process's limit of descriptors: the other half is for connections.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 if most is None else most
        self._lock = Lock()
        self._open: dict[DiskLogFile, None] = {}
        """The files with a descriptor, the most recently used one at the end."""
        self._in_folder: dict[str, set[DiskLogFile]] = defaultdict(set)
        """The files that are not closed, by folder."""

    def open(self, path: str) -> DiskLogFile:
        """Open a file; a missing one is created."""
        file = DiskLogFile(self, path)
        with self._lock:
            self._open_descriptor(file, os.O_CREAT)
            file.size = os.fstat(file.descriptor).st_size
            self._in_folder[_folder_of(path)].add(file)
        return file

    @contextmanager
    def descriptor_of(self, file: DiskLogFile) -> Iterator[int]:
        """Provide the descriptor of a file, and keep it open meanwhile."""
        with self._lock:
            if file.is_closed:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF), file.path)
            if file.descriptor < 0:
                self._open_descriptor(file)
            else:
                self._open[file] = self._open.pop(file)
            file.users += 1
        try:
            yield file.descriptor
        finally:
            with self._lock:
                file.users -= 1

    def keep_descriptor(self, file: DiskLogFile) -> None:
        """Keep a file's descriptor until the file is closed: its lock would end with the descriptor."""
        with self.descriptor_of(file), self._lock:
            file.users += 1

    def rename(self, path: str, new_path: str) -> None:
        """Rename a closed file, or a folder; the folder's files have the new path from then on."""
        with self._lock:
            Path(path).replace(new_path)
            files = self._in_folder.pop(path, None)
            for file in files or ():
                file.path = f"{new_path}/{file.path.rpartition('/')[2]}"
            if files:
                self._in_folder[new_path] = files

    def close(self, file: DiskLogFile) -> None:
        """Close a file."""
        with self._lock:
            file.is_closed = True
            siblings = self._in_folder[_folder_of(file.path)]
            siblings.discard(file)
            if not siblings:
                del self._in_folder[_folder_of(file.path)]
            if file in self._open:
                self._close_descriptor(file)

    def with_descriptors(self, call: Callable[[], T]) -> T:
        """Return the result of a call that needs descriptors of its own; if none is left, files give up theirs."""
        try:
            return call()
        except OSError as error:
            with self._lock:
                if error.errno not in NO_DESCRIPTOR_LEFT or not self._give_up(_CLOSED_AT_ONCE):
                    raise
        return call()

    def _open_descriptor(self, file: DiskLogFile, flags: int = 0) -> None:
        flags |= os.O_RDWR | os.O_CLOEXEC
        try:
            file.descriptor = os.open(file.path, flags, 0o644)
        except OSError as error:
            if error.errno not in NO_DESCRIPTOR_LEFT or not self._give_up(_CLOSED_AT_ONCE):
                raise
            file.descriptor = os.open(file.path, flags, 0o644)
        self._open[file] = None
        self._give_up(len(self._open) - self._most, spared=file)

    def _give_up(self, count: int, spared: DiskLogFile | None = None) -> int:
        """Close up to `count` descriptors, the least recently used ones; returns the number closed."""
        idle = (file for file in self._open if not file.users and file is not spared)
        doomed = [file for _, file in zip(range(count), idle, strict=False)]
        for file in doomed:
            self._close_descriptor(file)
        return len(doomed)

    def _close_descriptor(self, file: DiskLogFile) -> None:
        del self._open[file]
        descriptor, file.descriptor = file.descriptor, -1
        os.close(descriptor)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]
