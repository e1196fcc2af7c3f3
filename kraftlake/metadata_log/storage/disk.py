"""The writes of a lake to a disk or an object store, in one class that a test can replace."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from kraftlake.metadata_log.storage.location import Location
from kraftlake.metadata_log.storage.object_path import ObjectPath
from kraftlake.runtime.clock import Clock, SystemClock
from kraftlake.runtime.errors import LakeError, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

FOLDER_MODE = 0o700
FILE_MODE = 0o600
"""The mode of files: payloads hold SCRAM keys and sensitive configs, so only the owner may read a lake."""

Durability: TypeAlias = Literal["fsync", "os"]
"""The durability of an acknowledged append: "fsync" survives a power cut, "os" only the process's death."""

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
"""The errors of a link on a file system without hard links."""

_PROBE = ".probe-"

_PUTS = 3
"""The tries of a put with an unknown outcome, each with the same bytes: whichever succeeds, the commit is the same."""


class UnconfirmedWriteError(OSError):
    """Reports a write with an unknown outcome: it may be done, take effect later, or be lost in a power cut."""


class Disk:
    """A local disk. A write, link or new folder is durable only after the matching fsync."""

    durability: Durability = "fsync"
    clock: Clock = SystemClock()
    """The clock that measures the age of files."""

    def __init__(self, durability: Durability = "fsync") -> None:
        if durability not in get_args(Durability):
            raise UsageError(f"{durability!r} is no durability: it is one of {', '.join(get_args(Durability))}.")
        self.durability = durability

    def make_folder(self, path: Location) -> None:
        """Create a folder for its owner only, unless it exists."""
        _local(path).mkdir(mode=FOLDER_MODE, exist_ok=True)

    def write(self, path: Location, data: bytes | memoryview) -> None:
        """Write a new file; raises FileExistsError if it exists."""
        descriptor = os.open(_local(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            view = memoryview(data).cast("B")
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def fsync(self, path: Location) -> None:
        """Make a file's content, or a folder's entries, durable; does nothing with the durability "os"."""
        if self.durability == "os":
            return
        descriptor = os.open(_local(path), os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def link(self, source: Location, target: Location) -> None:
        """Link a file under a second name; raises FileExistsError where the name is taken.

        This is the compare-and-set.
        """
        os.link(_local(source), _local(target))

    def unlink(self, path: Location) -> None:
        """Delete a file; a missing one is no error."""
        _local(path).unlink(missing_ok=True)

    def fsync_all(self, paths: Sequence[Location]) -> None:
        """Make several files or folders durable, in any order."""
        for path in paths:
            self.fsync(path)

    def put_if_absent(self, path: Location, data: bytes, after: Sequence[Location] = ()) -> None:
        """Write a file, completely and durably or not at all, unless it exists; `data` differs from any other writer's.

        `after` are files and folders that must be durable before the file is visible.

        Raises FileExistsError if another writer's file exists, UnconfirmedWriteError if the outcome is unknown, another
        OSError if the disk refuses and nothing was written.
        """
        temporary = _temporary_beside(path)
        try:
            self.write(temporary, data)
            self.fsync_all([*after, temporary])
            try:
                self._link_commit(temporary, path)
            except OSError as fault:
                # A link may report a fault although it was made (a time-out, a lost reply): the file at `path` decides.
                if not _was_written(path, data, fault):
                    raise
            try:
                self.fsync(path.parent)
            except OSError as fault:
                raise UnconfirmedWriteError(*fault.args) from fault
        finally:
            # A temporary file that stays is harmless, so a disk that refuses this is no reason to refuse the commit.
            with contextlib.suppress(OSError):
                self.unlink(temporary)

    def check_put_if_absent(self, folder: Location) -> None:
        """Test `put_if_absent` on a probe file in a folder.

        Raises LakeError if commits could overwrite each other, or the file system has no links; OSError if the disk
        refuses.
        """
        probe = folder / probe_name()
        temporary = _temporary_beside(probe)
        try:
            self.write(temporary, b"")
            self._link_commit(temporary, probe)
        finally:
            for path in (temporary, probe):
                with contextlib.suppress(OSError):
                    self.unlink(path)

    def _link_commit(self, source: Location, target: Location) -> None:
        """The same as `link`; raises LakeError where the file system has no links."""
        try:
            self.link(source, target)
        except OSError as fault:
            if fault.errno not in _NO_LINKS:
                raise
            raise LakeError(
                f"The file system of {target.parent} makes no hard links ({fault.strerror}), and a commit of a lake is "
                "one: have the lake on a file system that makes them."
            ) from fault

    def replace(self, path: Location, data: bytes) -> None:
        """Write a file in place of any existing one; a reader finds the old one or the new one, complete."""
        temporary = _temporary_beside(path)
        try:
            self.write(temporary, data)
            self.fsync(temporary)
            self.rename(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                self.unlink(temporary)
            raise
        self.fsync(path.parent)

    def rename(self, source: Location, target: Location) -> None:
        """Rename a file, and replace any file of that name."""
        _local(source).replace(_local(target))


class ConcurrentDisk(Disk):
    """A disk on which several fsyncs run concurrently: a journal merges them, which halves the time of a commit."""

    def fsync_all(self, paths: Sequence[Location]) -> None:
        """Make several files or folders durable concurrently.

        After all have ended, raises the OSError of a failed one.
        """
        if self.durability == "os":
            return
        from concurrent.futures import wait

        others: list[Future[None]] = []
        # Once the main thread has returned, executors accept no work, while threads that the program started itself
        # may go on appending: this thread then does the fsyncs.
        with contextlib.suppress(RuntimeError):
            for path in paths[1:]:
                others.append(_threads(os.getpid()).submit(self.fsync, path))  # noqa: PERF401  # keeps those before a fault
        try:
            super().fsync_all([*paths[:1], *paths[1 + len(others) :]])
        finally:
            wait(others)
        for other in others:
            other.result()


@functools.cache
def _threads(_process: int) -> ThreadPoolExecutor:
    """The threads of this process: threads don't survive a fork."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(4, thread_name_prefix="fsync")


class ObjectStoreDisk(Disk):
    """An object store: an object is complete and durable, or does not exist; folders are part of its name."""

    def make_folder(self, path: Location) -> None:
        """Return without action: a prefix needs no creation."""

    def write(self, path: Location, data: bytes | memoryview) -> None:
        """Write a new object; the same bytes under this name are those of an earlier try."""
        self.put_if_absent(path, bytes(data))

    def fsync(self, path: Location) -> None:
        """Return without action: an accepted object is already durable."""

    def link(self, source: Location, target: Location) -> None:
        """Raise NotImplementedError: `put_if_absent` is one request."""
        raise NotImplementedError

    def unlink(self, path: Location) -> None:
        """Delete an object; a missing one is no error."""
        _object(path).delete()

    def put_if_absent(self, path: Location, data: bytes, after: Sequence[Location] = ()) -> None:  # noqa: ARG002
        """Create an object as on a disk.

        A put that timed out may take effect later, so only a successful read back counts. A refused put is read back as
        well: the token may have expired between two tries.
        """
        for tries_left in reversed(range(_PUTS)):
            try:
                return self._put(_object(path), data)
            except OSError as fault:
                if _was_written(path, data, fault):
                    return None
                if isinstance(fault, PermissionError):
                    raise
                if not tries_left:
                    raise UnconfirmedWriteError(*fault.args) from fault
        return None

    def check_put_if_absent(self, folder: Location) -> None:
        """Check `put_if_absent` as on a disk; some stores ignore the precondition `If-None-Match: *`."""
        probe = folder / probe_name()
        try:
            self.put_if_absent(probe, b"1")
            with contextlib.suppress(FileExistsError):
                self.put_if_absent(probe, b"2")
                raise LakeError(
                    f"The object store of {folder} overwrites an object that should be written only where there is "
                    "none (it ignores If-None-Match), so that two writers could overwrite each other's commits: a lake "
                    "needs a store that heeds it."
                )
        finally:
            with contextlib.suppress(OSError):
                self.unlink(probe)

    def replace(self, path: Location, data: bytes) -> None:
        """Write an object, and replace any existing one."""
        _object(path).put(data, create=False)

    def _put(self, path: ObjectPath, data: bytes) -> None:
        path.put(data, create=True)


def disk_for(place: Location, durability: Durability = "fsync") -> Disk:
    """Return the disk for a location. An object store has only its own durability."""
    return ObjectStoreDisk(durability) if isinstance(place, ObjectPath) else ConcurrentDisk(durability)


def disk_fault(path: Location, fault: OSError) -> LakeError:
    """Return the error for a write that the disk refused."""
    return LakeError(f"{path} can't be written: {fault.strerror or fault}; the lake is as it was.")


def _was_written(path: Location, data: bytes, fault: OSError) -> bool:
    """Whether `path` holds `data` after a write that reported a fault; False for a missing file.

    Raises FileExistsError for another writer's file, UnconfirmedWriteError for an unreadable one.
    """
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:
        raise UnconfirmedWriteError(*fault.args) from fault
    if found != data:
        raise FileExistsError(*fault.args) from fault
    return True


def probe_name() -> str:
    """Return a new name for a probe file of `check_put_if_absent`."""
    return f"{_PROBE}{os.urandom(16).hex()}.tmp"


def is_probe(name: str) -> bool:
    """Whether a file is a probe of `check_put_if_absent`, which may have been killed before the deletion."""
    return name.startswith(_PROBE)


def _temporary_beside(path: Location) -> Path:
    return _local(path).with_name(f".{path.name}.{os.urandom(16).hex()}.tmp")


def _local(path: Location) -> Path:
    assert isinstance(path, Path), f"{path} is not on a disk"
    return path


def _object(path: Location) -> ObjectPath:
    assert isinstance(path, ObjectPath), f"{path} is not in an object store"
    return path
