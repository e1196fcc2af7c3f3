"""A process that compacts, checkpoints, cleans up, trims and vacuums a lake until its disk kills it with SIGKILL.

For each line on stdin, a seed, it forks such a process and says `dead SIGNAL` after it. Run with `-m` and the lake,
and `compact` for a process that only compacts, so that it dies in the middle of that, or `compact-rows` for one that
compacts the derived table `events/`.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.compaction import compact, compact_rows
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from tests.metadata_log.doomed_writer import DeadlyDisk, say
from tests.metadata_log.log_batches import snapshot_batches

OPERATIONS = 40
OPERATIONS_OF_A_COMPACTION = 8
POLICY = UpkeepPolicy(checkpoint_after=5, keep_commits=2, compact_from=3, orphan_age_ms=0, exclusive=True)


class DeadlyUpkeepDisk(DeadlyDisk):
    """One that dies within a round of upkeep, renames included."""

    def __init__(self, chance: random.Random, operations: int = OPERATIONS) -> None:
        super().__init__(chance)
        self.left = chance.randint(1, operations)

    def rename(self, source: Path, target: Path) -> None:
        self._begin()
        super().rename(source, target)
        self._die("half")
        self._die("after")


def keep_up(lake: Path, seed: int) -> None:
    """Round after round, until the disk kills us."""
    chance = random.Random(seed)
    upkeep = Upkeep(lake, POLICY, disk=DeadlyUpkeepDisk(chance))
    log = MetadataLog.open(lake)
    for _ in range(20):
        end = log.end_offset
        if seed % 3 == 0 and end - 3 > log.start_offset:
            log.add_snapshot(
                SnapshotFacts(end_offset=end, epoch=1, last_contained_log_timestamp=1), snapshot_batches(3)
            )
            upkeep.trim(end - 3)
        upkeep.run()
        upkeep.vacuum()


def keep_compacting(lake: Path, seed: int) -> None:
    """Compact until the disk kills us, or nothing is left to do."""
    disk = DeadlyUpkeepDisk(random.Random(seed), OPERATIONS_OF_A_COMPACTION)
    while compact(lake / "log", disk, POLICY).made:
        pass


def keep_compacting_rows(lake: Path, seed: int) -> None:
    """As `keep_compacting`, of a derived table."""
    disk = DeadlyUpkeepDisk(random.Random(seed), OPERATIONS_OF_A_COMPACTION)
    while compact_rows(lake / "events", disk, POLICY).made:
        pass


LIVES = {"compact": keep_compacting, "compact-rows": keep_compacting_rows}

if __name__ == "__main__":
    live = LIVES[sys.argv[2]] if sys.argv[2:] else keep_up
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            live(Path(sys.argv[1]), int(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say("dead", os.WTERMSIG(status) if os.WIFSIGNALED(status) else -1)
