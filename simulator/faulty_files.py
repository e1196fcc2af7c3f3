"""A file system in memory that fails, and of which a power cut leaves what was synced and perhaps some of the rest."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterator
from random import Random

import attrs

READ, WRITE, SYNC = "read", "write", "sync"
_SECTOR = 64
"""The bytes that a power cut replaces by zeros together; small, as the logs of tests are."""


class PowerCut(BaseException):
    """The machine has stopped: nothing more happens before `FaultyFiles.power_cut`."""


class Nothing(Random):
    """The chance by which a power cut leaves nothing that was not synced."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0

    def random(self) -> float:
        return 1.0


class Everything(Nothing):
    """The chance by which a power cut leaves all that was done."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return (start if stop is None else stop) - 1


@attrs.frozen
class Fault:
    """The calls of some kinds (READ, WRITE, SYNC) under a folder fail with an error."""

    folder: str
    error: int
    kinds: frozenset[str] = frozenset((READ, WRITE, SYNC))


@attrs.define(eq=False)
class _File:
    content: bytearray = attrs.field(factory=bytearray)
    durable: bytes = b""
    changes: list[tuple[int, bytes] | int] = attrs.field(factory=list)
    """What was done since the last sync: bytes that were written at a position, or the size of a truncation."""
    changed_ms: int = 0
    locked_by: FaultyFile | None = None

    def write(self, position: int, data: bytes) -> None:
        self.content[position : position + len(data)] = data
        self.changes.append((position, bytes(data)))

    def truncate(self, size: int) -> None:
        del self.content[size:]
        self.changes.append(size)

    def sync(self) -> None:
        self.durable = bytes(self.content)
        self.changes.clear()

    def lose(self, chance: Random) -> None:
        """Keep what was synced, and of what was done since then the first part, perhaps torn or in part zeros."""
        content = bytearray(self.durable)
        synced = len(content)
        done = self.changes[: chance.randrange(len(self.changes) + 1)]
        for change in done:
            if isinstance(change, int):
                del content[change:]
                synced = min(synced, change)
            else:
                position, data = change
                data = data[: chance.randrange(len(data) + 1)] if change is done[-1] else data
                content[position : position + len(data)] = data
        if chance.random() < 0.3:
            for at in range(synced, len(content), _SECTOR):
                if chance.random() < 0.3:
                    end = min(len(content), at + _SECTOR)
                    content[at:end] = bytes(end - at)
        if chance.random() < 0.2 and synced < len(content) < len(self.durable):
            content += bytes(len(self.durable) - len(content))  # new bytes, and still the size before a truncation
        self.content = content
        self.sync()


@attrs.define(eq=False)
class _Folder:
    entries: dict[str, _File | _Folder] = attrs.field(factory=dict)
    durable: dict[str, _File | _Folder] = attrs.field(factory=dict)
    changes: list[dict[str, _File | _Folder | None]] = attrs.field(factory=list)
    """What was done since the last sync, in order: the new entries of names, None for a name that is gone."""

    def change(self, names: dict[str, _File | _Folder | None]) -> None:
        _put(self.entries, names)
        self.changes.append(names)

    def sync(self) -> None:
        self.durable = dict(self.entries)
        self.changes.clear()

    def lose(self, chance: Random) -> None:
        """Keep what was synced and the first of the changes since then, as a journal does; so in all that is left."""
        for names in self.changes[: chance.randrange(len(self.changes) + 1)]:
            _put(self.durable, names)
        self.entries = dict(self.durable)
        self.changes.clear()
        for name in sorted(self.entries):
            self.entries[name].lose(chance)


def _put(entries: dict[str, _File | _Folder], names: dict[str, _File | _Folder | None]) -> None:
    for name, node in names.items():
        if node is None:
            entries.pop(name, None)
        else:
            entries[name] = node


@attrs.define(eq=False)
class FaultyFiles:
    """`Files` in memory. `restart` and `power_cut` end all open files.

    A sync of a file or folder makes that one durable and nothing else: less than most file systems promise.
    `cut_after` calls from now the power is cut; `faults` fail; `space` are the bytes that may still be written under a
    folder.
    """

    chance: Random = attrs.field(factory=lambda: Random(1))
    faults: list[Fault] = attrs.field(factory=list)
    space: dict[str, int] = attrs.field(factory=dict)
    cut_after: int | None = None
    ignored_syncs: str = "\0"
    """A part of the paths whose syncs do nothing: tests must notice."""
    calls: int = 0
    life: int = 0
    """The number of restarts."""
    _root: _Folder = attrs.field(factory=_Folder)
    _now: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))

    def restart(self) -> None:
        """End the process: open files and locks are gone, and what was written is there."""
        self.life += 1
        self.cut_after = None
        for file in _files_in(self._root):
            file.locked_by = None

    def power_cut(self) -> None:
        """End the process and lose what was not synced, or a part of it."""
        self._root.lose(self.chance)
        self.restart()

    def check_life(self, life: int, path: str) -> None:
        """Check that the process that opened a file has not ended."""
        assert life == self.life, f"{path} is used after the end of the process"

    def call(self, kind: str, path: str) -> None:
        """Count a call of the process, and fail where it is to fail."""
        self.calls += 1
        if self.cut_after is not None:
            self.cut_after -= 1
            if self.cut_after < 0:
                raise PowerCut
        for fault in self.faults:
            if kind in fault.kinds and f"{path}/".startswith(f"{fault.folder}/"):
                raise OSError(fault.error, os.strerror(fault.error))

    def room_for(self, path: str, size: int) -> int:
        """How many of `size` bytes there is space for, which is used up."""
        for folder, left in self.space.items():
            if path.startswith(f"{folder}/"):
                size = min(size, left)
                self.space[folder] -= size
        return size

    def content(self, path: str) -> bytes:
        """What is in a file now, nothing where there is none; no call of the process."""
        file = self._find(path)
        return bytes(file.content) if isinstance(file, _File) else b""

    def content_names(self, folder: str) -> list[str]:
        """The names in a folder, sorted; no call of the process."""
        return sorted(self._folder(folder).entries)

    def remove_durably(self, folder: str) -> None:
        """Remove a folder as an operator does; no call of the process."""
        parent, name = self._parent(folder)
        parent.change({name: None})
        parent.sync()

    def now(self) -> int:
        return next(self._now)

    def _find(self, path: str) -> _File | _Folder | None:
        node: _File | _Folder | None = self._root
        for name in path.split("/") if path not in ("", ".") else ():
            node = node.entries.get(name) if isinstance(node, _Folder) else None
        return node

    def _folder(self, path: str) -> _Folder:
        node = self._find(path)
        if not isinstance(node, _Folder):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _parent(self, path: str) -> tuple[_Folder, str]:
        folder, _, name = path.rpartition("/")
        return self._folder(folder), name

    def open(self, path: str) -> FaultyFile:
        parent, name = self._parent(path)
        file = parent.entries.get(name)
        self.call(READ if file is not None else WRITE, path)
        if file is None:
            file = _File(changed_ms=self.now())
            parent.change({name: file})
        assert isinstance(file, _File)
        return FaultyFile(self, path, file, len(file.content), self.life)

    def exists(self, path: str) -> bool:
        self.call(READ, path)
        return self._find(path) is not None

    def is_folder(self, path: str) -> bool:
        self.call(READ, path)
        return isinstance(self._find(path), _Folder)

    def names(self, folder: str) -> list[str]:
        self.call(READ, folder)
        return sorted(self._folder(folder).entries)

    def make_folder(self, folder: str) -> None:
        self.call(WRITE, folder)
        parent, name = self._parent(folder)
        if name not in parent.entries:
            parent.change({name: _Folder()})

    def read(self, path: str) -> bytes:
        self.call(READ, path)
        file = self._find(path)
        if not isinstance(file, _File):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return bytes(file.content)

    def write_whole(self, path: str, data: bytes, *, sync_name: bool = True) -> None:
        """As the real one: a temporary file, which is synced and renamed, and the folder is synced."""
        parent, name = self._parent(path)
        self.call(WRITE, path)
        if self.room_for(path, len(data)) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        file = _File(bytearray(data), changed_ms=self.now())
        part = f"{name}.{self.now()}.part"
        try:
            self.call(SYNC, path)
        except PowerCut:
            file.changes.append((0, data))
            parent.change({part: file})
            raise
        file.sync()
        parent.change({name: file})
        if sync_name:
            self.sync_folder(path.rpartition("/")[0])

    def rename(self, path: str, new_path: str) -> None:
        self.call(WRITE, path)
        (parent, name), (new_parent, new_name) = self._parent(path), self._parent(new_path)
        assert parent is new_parent, "nothing is renamed into another folder"
        if name not in parent.entries:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        parent.change({new_name: parent.entries[name], name: None})

    def delete(self, path: str) -> None:
        self.call(WRITE, path)
        folder, _, name = path.rpartition("/")
        parent = self._find(folder)
        if isinstance(parent, _Folder) and name in parent.entries:
            parent.change({name: None})

    def delete_folder(self, folder: str) -> None:
        self.call(WRITE, folder)
        parent, name = self._parent(folder)
        node = parent.entries.get(name)
        if isinstance(node, _Folder):
            for inner in sorted(node.entries):
                self.delete(f"{folder}/{inner}")
            parent.change({name: None})

    def modified_ms(self, path: str) -> int:
        self.call(READ, path)
        file = self._find(path)
        if not isinstance(file, _File):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return file.changed_ms

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        self.call(WRITE, path)
        file = self._find(path)
        if not isinstance(file, _File):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        file.changed_ms = time_ms

    def sync_folder(self, folder: str) -> None:
        self.call(SYNC, folder)
        if self.ignored_syncs not in f"{folder}/":
            self._folder(folder).sync()


@attrs.define(eq=False)
class FaultyFile:
    """An open file of `FaultyFiles`. As of a real one, its size is not that of the file after a failed append."""

    _files: FaultyFiles
    _path: str
    _file: _File
    size: int
    _life: int

    def _call(self, kind: str) -> None:
        self._files.check_life(self._life, self._path)
        self._files.call(kind, self._path)

    def append(self, data: bytes) -> None:
        try:
            self._call(WRITE)
        except PowerCut:
            self._put(data)  # perhaps it has begun
            raise
        room = self._files.room_for(self._path, len(data))
        self._put(data[:room])
        if room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size += len(data)

    def _put(self, data: bytes) -> None:
        self._file.write(self.size, data)
        self._file.changed_ms = self._files.now()

    def read(self, position: int, size: int) -> bytes:
        self._call(READ)
        return bytes(self._file.content[position : position + max(0, min(size, self.size - position))])

    def truncate(self, size: int) -> None:
        self._call(WRITE)
        self._file.truncate(size)
        self.size = size

    def sync(self) -> None:
        try:
            self._call(SYNC)
        except OSError:
            self._file.lose(self._files.chance)  # the pages count as clean, and no later sync writes them
            raise
        if self._files.ignored_syncs not in self._path:
            self._file.sync()

    def lock(self) -> bool:
        self._call(WRITE)
        if self._file.locked_by not in (None, self):
            return False
        self._file.locked_by = self
        return True

    def close(self) -> None:
        if self._file.locked_by is self:
            self._file.locked_by = None


def _files_in(folder: _Folder) -> Iterator[_File]:
    for node in folder.entries.values():
        if isinstance(node, _File):
            yield node
        else:
            yield from _files_in(node)
