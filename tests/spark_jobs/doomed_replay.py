"""A replay that is killed with -9 at a publication: `python -m tests.spark_jobs.doomed_replay LAKE STAGE NUMBER BYTES`.

STAGE "before" kills when executors have written the files of commit NUMBER and nothing of it is committed; "after"
kills when it is committed, and nothing of the next step is kept. A snapshot is due every BYTES bytes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from kraftlake.metadata_log.delta_table.actions import AddFile
from kraftlake.spark_jobs import StreamOptions, run_job
from kraftlake.tables.lake_table import LakeTable


def main(lake: str, stage: str, number: int) -> None:
    append_files = LakeTable.append_files
    commits = 0

    def deadly_append(table: LakeTable, files: Sequence[AddFile], last_offset: int) -> None:
        nonlocal commits
        commits += 1
        if commits == number and stage == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        append_files(table, files, last_offset)
        if commits == number and stage == "after":
            os.kill(os.getpid(), signal.SIGKILL)

    LakeTable.append_files = deadly_append  # type: ignore[method-assign]
    run_job("replay", lake, options=StreamOptions(max_records=1_500), snapshot_every_bytes=int(sys.argv[4]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
