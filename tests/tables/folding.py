"""Tables made of a lake's log without Spark: the fold and the writers alone."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.table_writer import TableWriter


class CoveringTable:
    """A table of which all that matters is how far it is."""

    def __init__(self, covers: int | None) -> None:
        self.covered = covers


def fold_into(log: MetadataLog, writers: Sequence[TableWriter], covers: int | None = None) -> list[pa.Table]:
    """The rows that the writers make of a whole log, or of what lies beyond the offset that their tables cover."""
    fold = LogFold(LakeReader(log), [TableFeed(writer, covers) for writer in writers])
    fold.begin()
    fold.open([CoveringTable(covers)] * len(writers))  # type: ignore[list-item]
    for rows in log.batch_rows(fold.last_offset + 1):
        for _ in fold.take(rows):
            pass
    return [writer.drain() for writer in writers]
