"""Runs of the job `history` without Spark: what a stream does with the writers, up to any offset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.jobs import HISTORY


class Run:
    """What a stream does with the writers of the job, without Spark."""

    def __init__(self, lake: Path) -> None:
        self.log = MetadataLog.open(lake)
        self.writers = HISTORY.new_writers()
        self.tables = [writer.table(lake) for writer in self.writers]
        self.feeds = [TableFeed(w, table.last_offset()) for w, table in zip(self.writers, self.tables, strict=True)]
        self.fold = LogFold(LakeReader(self.log), self.feeds)
        self.fold.begin()
        for table in self.tables:
            table.create("log-1")
        self.fold.open(self.tables)

    def take(self, to_offset: int, *, goes_on: bool = False) -> None:
        """Go on to an offset, and publish."""
        self.fold_to(to_offset)
        self.publish(len(self.tables), goes_on=goes_on)

    def fold_to(self, to_offset: int) -> None:
        """Go on to an offset."""
        for rows in self.log.batch_rows(self.fold.last_offset + 1, to_offset):
            for _ in self.fold.take(rows):
                pass

    def begin_appends(self) -> list[Callable[[], None]]:
        """Begin to append to all tables; the other steps."""
        return [
            table.begin_append(feed.writer.drain_later(), self.fold.last_offset)
            for feed, table in zip(self.feeds, self.tables, strict=True)
        ]

    def publish(self, tables: int, *, goes_on: bool = False) -> None:
        """Append to some of the tables: a run may be killed before it gets to the others."""
        for feed, table in [*zip(self.feeds, self.tables, strict=True)][:tables]:
            if feed.covers is None or feed.covers < self.fold.last_offset or table.waits:
                table.append(feed.writer.drain_later(), self.fold.last_offset, goes_on=goes_on)

    def finish(self) -> None:
        for table in self.tables:
            table.finish()


def run_to_end(lake: Path) -> None:
    run = Run(lake)
    if run.fold.last_offset + 1 < run.log.end_offset:
        run.take(run.log.end_offset - 1)
    run.finish()
