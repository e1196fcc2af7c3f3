"""A replay that is killed with -9 at a publication: `python -m tests.spark_jobs.doomed_replay LAKE STAGE NUMBER BYTES`.

STAGE "before" kills when the images are made and nothing of publication NUMBER is written but its snapshots; "after"
kills when it is written and the stream does not know yet. A snapshot is due every BYTES bytes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import pyarrow as pa

from kraftlake.spark_jobs import StreamOptions, run_job
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.lazy_table import LazyTable


def main(lake: str, stage: str, number: int) -> None:
    begin_append = LakeTable.begin_append
    publications = 0

    def begin_deadly_append(
        table: LakeTable, rows: pa.Table | LazyTable, last_offset: int, *, goes_on: bool = False
    ) -> Callable[[], None]:
        append = begin_append(table, rows, last_offset, goes_on=goes_on)

        def deadly_append() -> None:
            nonlocal publications
            publications += 1
            if publications == number and stage == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            append()
            if publications == number and stage == "after":
                os.kill(os.getpid(), signal.SIGKILL)

        return deadly_append

    LakeTable.begin_append = begin_deadly_append  # type: ignore[method-assign]
    run_job("replay", lake, options=StreamOptions(max_files=1), snapshot_every_bytes=int(sys.argv[4]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
