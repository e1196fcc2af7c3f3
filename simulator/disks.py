"""The disks of a broker's machine in virtual time: slow, failing, full, and forgetful when the power is cut."""

from __future__ import annotations

from random import Random

from simulator.faulty_files import SYNC, FaultyFiles
from simulator.scheduler import MILLISECOND, Killed, Process, Running, active


class VirtualFiles(FaultyFiles):
    """Files of a machine, whose broker is `process`; a call of a process that has ended ends its thread."""

    def __init__(self, chance: Random) -> None:
        super().__init__(chance)
        self.process: Process | None = None
        self.slow = 0.0
        """The share of calls that take up to `slow_ns`."""
        self.slow_ns = 2_000 * MILLISECOND
        self.hits = 0
        """How many calls were slow or failed."""

    def check_life(self, life: int, path: str) -> None:
        if life != self.life:
            raise Killed

    def call(self, kind: str, path: str) -> None:
        scheduler = Running.scheduler
        if scheduler.current is not None:
            if scheduler.process is not self.process or not self.process.alive:
                raise Killed
            if self.slow and self.chance.random() < self.slow:
                self.hits += 1
                scheduler.sleep(self.chance.randrange(self.slow_ns))
            elif kind is SYNC:
                scheduler.sleep(self.chance.randrange(MILLISECOND, 4 * MILLISECOND))
        try:
            super().call(kind, path)
        except OSError:
            self.hits += 1
            raise

    def now(self) -> int:
        """The broker's time, by which retention removes a segment that cleaning has left without a record."""
        return active().time_ns() // MILLISECOND

    def room_for(self, path: str, size: int) -> int:
        room = super().room_for(path, size)
        self.hits += room < size
        return room


def files_of_process() -> VirtualFiles:
    """In place of `DiskFiles`."""
    files: VirtualFiles = active().process.extra["files"]
    return files
