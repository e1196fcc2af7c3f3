"""A model of what a power cut leaves: only what was synced is sure, anything else may be there, or not, or torn."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from itertools import count
from pathlib import Path

from kraftlake.metadata_log.storage.disk import Disk


class PowerCut(BaseException):
    """The machine stopped; no further operation happens."""


class _File:
    """An inode: what was written, and whether it is on the platter."""

    def __init__(self, number: int, data: bytes) -> None:
        self.number = number
        self.data = data
        self.synced = False


class ForgetfulDisk(Disk):
    """Does everything on the real folder `root` too, so that readers see it, and keeps what is durable beside it.

    `cut_at` operations from now the power is cut, before that operation; `restart` then puts a possible aftermath on
    the real disk. `ignored` is the suffix of files, or the name of folders, whose fsync
    does nothing, which the tests must notice.
    """

    def __init__(self, root: Path, ignored: str = "") -> None:
        self.root = root
        self.ignored = ignored
        self.cut_at: int | None = None
        self._numbers = count()
        self._seen: dict[Path, _File | None] = {}
        self._durable: dict[Path, _File | None] = {}
        self._replaced: set[Path] = set()
        """Names that a rename gave to another file: each is the old one or the new one, and never gone."""
        self._changed: defaultdict[Path, set[Path]] = defaultdict(set)
        """The names in each folder that are others than the durable ones, perhaps."""

    def hold(self, path: Path, data: bytes) -> None:
        """Have a durable file, in durable folders."""
        for folder in reversed(path.relative_to(self.root).parents[:-1]):
            (self.root / folder).mkdir(mode=0o700, exist_ok=True)
            self._seen[self.root / folder] = self._durable[self.root / folder] = None
        path.write_bytes(data)
        file = self._seen[path] = self._durable[path] = _File(next(self._numbers), data)
        file.synced = True

    def fill(self, path: Path, data: bytes) -> None:
        """Give a new file that was written in part its whole content."""
        path.write_bytes(data)
        file = self._seen[path]
        assert file is not None
        file.data = data

    def _name(self, path: Path, file: _File | None) -> None:
        self._seen[path] = file
        self._changed[path.parent].add(path)

    def _step(self) -> None:
        if self.cut_at is not None:
            self.cut_at -= 1
            if self.cut_at < 0:
                raise PowerCut

    def make_folder(self, path: Path) -> None:
        self._step()
        super().make_folder(path)
        if path not in self._seen:
            self._name(path, None)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self._step()
        super().write(path, data)
        self._name(path, _File(next(self._numbers), bytes(data)))

    def fsync(self, path: Path) -> None:
        self._step()
        folder = self._seen.get(path) is None  # so is `root`, which has no name
        if self.ignored and self.ignored == (path.name if folder else path.suffix):
            return
        if not folder:
            file = self._seen[path]
            assert file is not None
            file.synced = True
            return
        for name in self._changed.pop(path, ()):
            if name in self._seen:
                self._durable[name] = self._seen[name]
            else:
                self._durable.pop(name, None)

    def link(self, source: Path, target: Path) -> None:
        self._step()
        super().link(source, target)
        self._name(target, self._seen[source])

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)
        self._name(target, self._seen.pop(source))
        self._changed[source.parent].add(source)
        self._replaced.add(target)

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)
        self._seen.pop(path, None)
        self._changed[path.parent].add(path)
        self._replaced.discard(path)

    def restart(self, chance: random.Random) -> None:
        """Put what this power cut may have left on the real disk: each name and content that wasn't synced by lot."""
        after: dict[Path, _File | None] = {}
        for path in sorted({*self._seen, *self._durable}):
            lots = [names[path] for names in (self._seen, self._durable) if path in names]
            if path in self._seen and path in self._durable and self._seen[path] is self._durable[path]:
                after[path] = self._seen[path]
            elif (path in self._replaced and path in self._durable) or chance.random() < 0.5:
                after[path] = chance.choice(lots)
        shutil.rmtree(self.root)
        self.root.mkdir()
        kept: dict[Path, _File | None] = {}
        for path, file in after.items():
            if path.parent != self.root and path.parent not in kept:
                continue
            kept[path] = file
            if file is None:
                path.mkdir(mode=0o700)
                continue
            if not file.synced:
                cut = chance.randrange(len(file.data) + 1)
                file.data = file.data[:cut] + bytes(chance.choice([0, len(file.data) - cut]))
                file.synced = True
            path.write_bytes(file.data)
        self._seen, self._durable, self._replaced = dict(kept), dict(kept), set()
        self._changed.clear()
        self.cut_at = None
