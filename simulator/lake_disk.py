"""A lake on a local disk in a simulation: slow, failing, torn by crashes, and forgetful when the power is cut.

Files lie in a real folder. Each write of production's code takes virtual time; what it reads may fail or be cut off.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kraftlake.metadata_log.delta_table import delta_log
from kraftlake.metadata_log.storage.disk import Disk, Durability, disk_for
from kraftlake.metadata_log.storage.location import Location
from simulator.forgetful_disk import ForgetfulDisk
from simulator.lake_store import LakeTrouble, Strike
from simulator.scheduler import MILLISECOND, WALL_START_NS, Killed, Process, Scheduler, active


class LakeDisk(ForgetfulDisk):
    """The disk of the folder `root`; `on_put` gets the key and content of each file that is given its name by a link.

    Of `LakeTrouble`, `fails` is the share of calls that fail, `short` that of files of which only the first part is
    read, `unanswered` that of links and renames that fail although they were made.
    """

    def __init__(self, scheduler: Scheduler, root: Path) -> None:
        super().__init__(root)
        root.mkdir()
        self.scheduler = scheduler
        self.chance = scheduler.outside.chance
        self.trouble = LakeTrouble()
        self.strike = Strike(scheduler)
        self.hits = 0
        """How many calls were slow or failed."""
        self.on_put: Callable[[str, bytes, Process], None] = lambda key, data, writer: None

    def copy_of(self, objects: dict[str, bytes]) -> None:
        """Begin with these files, by their paths."""
        for key, data in objects.items():
            self.hold(self.root / key, data)
            self._date(self.root / key)
            self.on_put(key, data, self.scheduler.outside)

    def write(self, path: Path, data: bytes | memoryview) -> None:
        """A file is half there before it is whole; who is killed in between leaves it so."""
        content = bytes(data)
        super().write(path, content[: self.chance.randrange(len(content) + 1)])
        self._date(path)
        self._step()
        self.fill(path, content)
        self._date(path)

    def fsync_all(self, paths: list[Path]) -> None:
        """In any order."""
        super().fsync_all(self.chance.sample(list(paths), len(paths)))

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        file = self._seen[target]
        assert file is not None
        self.on_put(str(target.relative_to(self.root)), file.data, self.scheduler.process)
        self.strike.named()
        self._lose_answer()

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._lose_answer()

    def restart(self, chance: random.Random) -> None:
        super().restart(chance)
        for path in self.root.rglob("*"):
            self._date(path)

    def hooks(self) -> list[tuple[Any, str, Any]]:
        """Objects, names of their attributes, and the values to give them, by which nodes read this disk."""
        list_folder, names_in, look, read = Path.iterdir, delta_log._names_in, Path.stat, Path.read_bytes

        def new_read(path: Path) -> bytes:
            self._read(path)
            return self._cut(path, read(path))

        def new_look(path: Path, **options: Any) -> os.stat_result:
            self._read(path)
            return look(path, **options)

        def new_list(path: Path) -> Iterator[Path]:
            self._read(path)
            return list_folder(path)

        def new_names(folder: Path, *, after: str) -> list[str]:
            self._read(folder)
            return names_in(folder, after=after)

        return [
            (Path, "read_bytes", new_read), (Path, "stat", new_look), (Path, "iterdir", new_list),
            (delta_log, "_names_in", new_names),
        ]  # fmt: skip

    def _trouble_of(self, path: Path) -> LakeTrouble | None:
        """What may go wrong where the running task reads a file; None for who is no node, and files of others."""
        process = self.scheduler.process
        if self.scheduler.current is None or "node" not in process.extra or self.root not in path.parents:
            return None
        return process.extra.get("lake_trouble") or self.trouble

    def _read(self, path: Path) -> None:
        """A node reads something; raises OSError."""
        trouble = self._trouble_of(path)
        if trouble is not None and trouble.fails and self.chance.random() < trouble.fails:
            self.hits += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    def _cut(self, path: Path, data: bytes) -> bytes:
        """What a node reads of a file."""
        trouble = self._trouble_of(path)
        if trouble is None or not trouble.short or self.chance.random() >= trouble.short:
            return data
        self.hits += 1
        return data[: self.chance.randrange(len(data) + 1)]

    def _date(self, path: Path) -> None:
        """The age of a file is measured by virtual time, too."""
        now_ns = WALL_START_NS + self.scheduler.now_ns
        os.utime(path, ns=(now_ns, now_ns))

    def _step(self) -> None:
        """Spend the time of a call; raises Killed, OSError."""
        scheduler, trouble, chance = self.scheduler, self.trouble, self.chance
        if not scheduler.process.alive:
            raise Killed
        self.strike.count_down()
        if trouble.slow and chance.random() < trouble.slow:
            self.hits += 1
            scheduler.sleep(chance.randrange(trouble.slow_ns))
        else:
            scheduler.sleep(chance.randrange(MILLISECOND // 4, 2 * MILLISECOND))
        if trouble.fails and chance.random() < trouble.fails:
            self.hits += 1
            number = chance.choice((errno.EIO, errno.ENOSPC))
            raise OSError(number, os.strerror(number))

    def _lose_answer(self) -> None:
        if self.trouble.unanswered and self.chance.random() < self.trouble.unanswered:
            self.hits += 1
            raise OSError(errno.EIO, "the disk does not answer")


def disk_of_lake(place: Location, durability: Durability = "fsync") -> Disk:
    """In place of `disk_for`."""
    lake = active().outside.extra["lake"]
    return lake if isinstance(lake, LakeDisk) else disk_for(place, durability)
