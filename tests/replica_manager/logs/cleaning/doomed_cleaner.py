"""A process that appends to a compacted log and cleans it, again and again, until it kills itself with SIGKILL.

For each line on stdin, a seed, it forks such a process and says `dead SIGNAL` after it; each other line is the end
offset of an append that was made. A record's key and value follow from its offset.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from random import Random
from typing import NoReturn

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.logs.cleaning.log_cleaner import LogCleaner
from kraftlake.replica_manager.logs.disk.disk_log import DiskPartitionLog
from kraftlake.replica_manager.logs.disk.disk_log_manager import DiskLogManager, open_log_manager
from kraftlake.replica_manager.logs.disk.files import DiskFiles, Files, LogFile
from kraftlake.runtime.clock import ManualClock
from kraftlake.runtime.log import without_logs
from simulator.data_batches import keyed
from tests.replica_manager.logs.cleaning.cleaned import COMPACTED

NAME = TopicPartition("foo", 0)
TOPIC = Uuid(bytes(range(16)))
CALLS = 150
"""The most calls after which a process dies."""


def key_of(offset: int) -> bytes:
    return b"k%d" % (offset * offset % 11)


def value_of(offset: int) -> bytes | None:
    return None if offset % 5 == 0 else b"v%d" % offset


def opened_log(folder: Path, files: Files) -> tuple[DiskLogManager, DiskPartitionLog]:
    """The log as a start after a kill finds it; its topic's tombstones stay."""
    manager = open_log_manager(
        [str(folder)], cluster_id="c", node_id=1, clock=ManualClock(10_000), defaults=COMPACTED,
        topic_configs=lambda _: {}, on_failure=lambda *_: None, files=files,
    )  # fmt: skip
    with without_logs():
        manager.startup((), lambda *_: False)
        log = manager.get_or_create_log(NAME, is_new=True, is_future=False, topic_id=TOPIC, target_directory_id=None)
    return manager, log


class DeadlyFiles(DiskFiles):
    """Files under which the process dies at one call: before it, in the middle of an append, or right after it."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self.left = chance.randint(1, CALLS)
        self.moment = chance.choice(["before", "half", "after"])

    def begin(self) -> None:
        self.left -= 1
        self.die("before")

    def die(self, moment: str) -> None:
        if self.left <= 0 and moment == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def open(self, path: str) -> LogFile:  # type: ignore[override]
        self.begin()
        return _DeadlyFile(super().open(path), self)

    def write_whole(self, path: str, data: bytes, *, sync_name: bool = True) -> None:
        self.begin()
        super().write_whole(path, data, sync_name=sync_name)
        self.die("after")

    def rename(self, path: str, new_path: str) -> None:
        self.begin()
        super().rename(path, new_path)
        self.die("after")

    def delete(self, path: str) -> None:
        self.begin()
        super().delete(path)
        self.die("after")

    def sync_folder(self, folder: str) -> None:
        self.begin()
        super().sync_folder(folder)
        self.die("after")


class _DeadlyFile:
    def __init__(self, file: LogFile, files: DeadlyFiles) -> None:
        self._file = file
        self._files = files
        self.read, self.lock, self.close = file.read, file.lock, file.close

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, data: bytes | memoryview) -> None:
        self._files.begin()
        if self._files.left <= 0 and self._files.moment == "half":
            self._file.append(data[: len(data) // 2])
            self._files.die("half")
        self._file.append(data)
        self._files.die("after")

    def truncate(self, size: int) -> None:
        self._files.begin()
        self._file.truncate(size)

    def sync(self) -> None:
        self._files.begin()
        self._file.sync()
        self._files.die("after")


def run(folder: Path, seed: int) -> NoReturn:
    chance = Random(seed)
    manager, log = opened_log(folder, DeadlyFiles(chance))
    cleaner = LogCleaner(manager=manager, clock=ManualClock(10_000), random=chance)
    while True:
        for _ in range(chance.randrange(1, 12)):
            base = log.log_end_offset
            records = [(key_of(at), value_of(at)) for at in range(base, base + chance.randrange(1, 5))]
            log.append_as_leader(keyed(*records, times=(1_000 + base,) * len(records)), 0)
            print(log.log_end_offset, flush=True)
        log.update_high_watermark(log.log_end_offset)
        with without_logs():
            while (steps := cleaner.clean_next()) is not None:
                list(steps)
        log.delete_files()


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(Path(sys.argv[1]), int(line))
        _, status = os.waitpid(child, 0)
        print("dead", os.WTERMSIG(status), flush=True)
