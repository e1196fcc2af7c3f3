"""A process that does the upkeep of a lake until its disk kills it with SIGKILL, at one operation.

For each line on stdin, a lake and the number of the operation, it forks such a process, and says how it ended.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from kraftlake.server.lake_upkeep import LakeUpkeep
from tests.metadata_log.doomed_upkeep import DeadlyUpkeepDisk

if __name__ == "__main__":
    for line in sys.stdin:
        lake, operation = line.rsplit(maxsplit=1)
        child = os.fork()
        if child == 0:
            disk = DeadlyUpkeepDisk(random.Random(int(operation)))
            disk.left = int(operation)
            LakeUpkeep(Path(lake), disk=disk).remove()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status), flush=True)
