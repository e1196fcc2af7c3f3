"""A process that appends to a lake until it kills itself with SIGKILL, or until it has won its share of a race.

Each line on its stdout is an append that was acknowledged as durable: `base end`. Run with `-m` and the arguments
`die LAKE` (for each line on stdin, a seed, it forks such a process and says `dead SIGNAL` after it; `reign LAKE` does
so with a claimant of epochs, `usurp LAKE NODE` with one that claims and is fenced again and again), or, beginning at a
line on stdin, `race LAKE NAME APPENDS`, `lead LAKE NODE CLAIMS`, `create LAKE NAME ATTEMPTS`.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.metadata_log.storage.disk import Disk
from kraftlake.records.batch import RecordBatch
from kraftlake.runtime.errors import FencedEpochError, ImportConflictError, LakeError
from tests.metadata_log.log_batches import data_batch, snapshot_batches

OPERATIONS = 60


class DeadlyDisk(Disk):
    """A disk under which the process dies at one operation: before it, in the middle of a write, or right after it."""

    def __init__(self, chance: random.Random) -> None:
        self.left = chance.randint(1, OPERATIONS)
        self.moment = chance.choice(["before", "half", "after"])

    def _die(self, moment: str) -> None:
        # Operations overlap, so another one may have begun since the last one that was to be survived.
        if self.left <= 0 and moment == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def _begin(self) -> None:
        self.left -= 1
        self._die("before")

    def make_folder(self, path: Path) -> None:
        self._begin()
        super().make_folder(path)
        self._die("half")
        self._die("after")

    def write(self, path: Path, data: bytes | memoryview) -> None:
        self._begin()
        if self.left <= 0 and self.moment == "half":
            super().write(path, memoryview(data)[: len(data) // 2])
            self._die("half")
        super().write(path, data)
        self._die("after")

    def fsync(self, path: Path) -> None:
        self._begin()
        super().fsync(path)
        self._die("half")
        self._die("after")

    def link(self, source: Path, target: Path) -> None:
        self._begin()
        super().link(source, target)
        self._die("half")
        self._die("after")

    def unlink(self, path: Path) -> None:
        self._begin()
        super().unlink(path)
        self._die("half")
        self._die("after")


class DeadlyAtCommitDisk(DeadlyDisk):
    """One that dies between a data file, which is whole and on the disk, and the commit that would name it."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.left = sys.maxsize
        self.commits = chance.randint(1, 8)

    def link(self, source: Path, target: Path) -> None:
        if target.suffix == ".json" and target.parent.parent.name == "log":
            self.commits -= 1
            if self.commits <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
        super().link(source, target)


def batches_at(offset: int) -> list[RecordBatch]:
    """What whoever writes at an offset writes there: one to three batches, determined by the offset alone."""
    chance = random.Random(offset)
    batches: list[RecordBatch] = []
    for _ in range(chance.randint(1, 3)):
        batches.append(data_batch(offset, chance.randint(1, 5), epoch=1 + offset // 100))
        offset = batches[-1].last_offset + 1
    return batches


def say(*words: object) -> None:
    """In one write(2), so that what was said survives the process."""
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


def die(path: Path, seed: int) -> None:
    """Append, a snapshot now and then, until the disk kills us, of every third just before a commit."""
    disk = (DeadlyDisk if seed % 3 else DeadlyAtCommitDisk)(random.Random(seed))
    try:
        log = MetadataLog.open(path, disk=disk)
    except LakeError:
        log = MetadataLog.create(path, disk=disk)
    while True:
        base = log.end_offset
        log.append(batches_at(base), committed_to=base)
        say(base, log.end_offset)
        if log.version % 5 == 0:
            end = log.end_offset
            log.add_snapshot(
                SnapshotFacts(end_offset=end, epoch=log.epoch, last_contained_log_timestamp=end),
                snapshot_batches(end % 9 + 1),
            )
            say("snapshot", end)


def reign(path: Path, seed: int) -> None:
    """Claim, and append at that epoch, until the disk kills us."""
    chance = random.Random(seed)
    log = MetadataLog.open(path, disk=DeadlyDisk(chance))
    epoch = log.claim(1)
    say(epoch, "claimed")
    while True:
        base = log.end_offset
        log.append(reign_batches(base, epoch), epoch=epoch, expected_end_offset=base)
        say(base, log.end_offset)


def usurp(path: Path, node_id: int, seed: int) -> None:
    """Claim against others, append at that epoch until it is fenced, and claim again, until the disk kills us."""
    chance = random.Random(seed)
    log = MetadataLog.open(path, disk=DeadlyDisk(chance))
    while True:
        reign_until_fenced(log, node_id, chance.randint(1, 6))


def reign_batches(offset: int, epoch: int) -> list[RecordBatch]:
    """What a claimant writes at an offset: two batches."""
    return [data_batch(offset, 1 + offset % 3, epoch=epoch), data_batch(offset + 1 + offset % 3, 2, epoch=epoch)]


def die_again_and_again(live: Callable[[int], None]) -> None:
    """Fork, so that the imports are paid for once, and nothing has been done yet in which a fork could be unsafe."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            live(int(line))
        _, status = os.waitpid(child, 0)
        say("dead", os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1)


def race(path: str, name: str, appends: int) -> None:
    """Append against others until `appends` of ours are in."""
    sys.stdin.readline()
    log = MetadataLog.open(path)
    while appends:
        base = log.end_offset
        try:
            log.append([data_batch(base, 1 + base % 3, who=name)])
        except ImportConflictError:
            raise
        except LakeError:
            log.refresh()
        else:
            say(base, log.end_offset)
            appends -= 1


def lead(path: str, node_id: int, claims: int) -> None:
    """Claim again and again, against others, and append at each epoch until it is fenced, at most a few times."""
    sys.stdin.readline()
    log = MetadataLog.open(path)
    chance = random.Random(node_id)
    for number in range(claims):
        reign_until_fenced(log, node_id, chance.randint(1, 6), waits=number == 0)


def reign_until_fenced(log: MetadataLog, node_id: int, appends: int, *, waits: bool = False) -> None:
    """Claim, and append at that epoch, at most so often; says so, and whether anything goes on after a fence.

    One that `waits` appends after a line on stdin.
    """
    epoch = log.claim(node_id)
    say(epoch, "claimed")
    if waits:
        sys.stdin.readline()
    try:
        for _ in range(appends):
            base = log.end_offset
            log.append([data_batch(base, epoch=epoch, who=f"-node{node_id}")], epoch=epoch)
            say(base, epoch)
    except FencedEpochError as fault:
        assert fault.epoch == epoch < fault.current_epoch  # noqa: PT017
        say(epoch, "fenced")
        with contextlib.suppress(FencedEpochError):
            log.append([data_batch(log.end_offset, epoch=epoch)], epoch=epoch)
            say(epoch, "unfenced")


def create(path: Path, name: str, attempts: int) -> None:
    """Create lakes against others; names those that this one made."""
    for attempt in range(attempts):
        sys.stdin.readline()
        with contextlib.suppress(LakeError):
            MetadataLog.create(path / f"lake{attempt}", name)
            say(attempt, name)


if __name__ == "__main__":
    what, lake, *arguments = sys.argv[1:]
    if what == "die":
        die_again_and_again(partial(die, Path(lake)))
    elif what == "reign":
        die_again_and_again(partial(reign, Path(lake)))
    elif what == "usurp":
        die_again_and_again(partial(usurp, Path(lake), int(arguments[0])))
    elif what == "lead":
        lead(lake, int(arguments[0]), int(arguments[1]))
    elif what == "race":
        race(lake, arguments[0], int(arguments[1]))
    else:
        create(Path(lake), arguments[0], int(arguments[1]))
