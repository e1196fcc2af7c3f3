"""A process that appends no-ops to a lake as fast as it can until its stdin ends: `-m tests.metadata_log.live_writer`.

Its arguments are LAKE and how many appends lie between two rounds of upkeep, 0 for none. Each line on its stdout is
the last link of the chain that was acknowledged as durable, one at the start and one each hundred appends.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from tests.metadata_log.log_batches import noop_batch

_POLICY = UpkeepPolicy(checkpoint_after=50, keep_commits=60, compact_from=8)


def write(lake: str, upkeep_each: int) -> None:
    """Append until stdin ends."""
    log = MetadataLog.open(lake, durability="os")
    appends = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        log.append([noop_batch(log.end_offset, epoch=max(log.epoch, 1))])
        if appends % 100 == 0:
            assert log.chain is not None
            sys.stdout.write(f"{log.chain.link}\n")
            sys.stdout.flush()
        appends += 1
        if upkeep_each and appends % upkeep_each == 0:
            Upkeep(lake, _POLICY).run()


@contextlib.contextmanager
def writing(lake: Path, *, upkeep_each: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Such a process, which has made its first append; it has ended, without a fault, behind this."""
    command = [sys.executable, "-m", "tests.metadata_log.live_writer", str(lake), str(upkeep_each)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield process
        finally:
            process.stdin.close()
            process.stdout.read()
            assert process.wait() == 0


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
