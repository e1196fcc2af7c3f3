"""Tables that are kept by one run, whose writers share the deltas of the log, are as those kept alone."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.batch import RecordBatch
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.tables.catch_up.log_fold import LogFold, TableFeed
from kraftlake.tables.jobs import ALL
from kraftlake.tables.table_writer import TableWriter
from tests.metadata_logs import metadata_logs
from tests.tables.sample_log import append_in


def bring_up(lake: Path, writers: Sequence[TableWriter], ends: Sequence[int]) -> None:
    """Bring the writers' tables up to these offsets, one after the other, in one run."""
    log = MetadataLog.open(lake)
    tables = [writer.table(lake) for writer in writers]
    feeds = [TableFeed(writer, table.last_offset()) for writer, table in zip(writers, tables, strict=True)]
    fold = LogFold(LakeReader(log), feeds)
    fold.begin()
    for table in tables:
        table.create("log-1")
    fold.open(tables)
    for end in ends:
        if fold.last_offset < end:
            for rows in log.batch_rows(fold.last_offset + 1, end):
                [*fold.take(rows)]
    for feed, table in zip(feeds, tables, strict=True):
        if feed.covers is None or feed.covers < fold.last_offset:
            table.append(feed.writer.drain_later(), fold.last_offset)
        table.finish()


def rows_of(lake: Path) -> dict[str, list[str]]:
    """The rows of each table, in an order of their own."""
    return {name: sorted(map(repr, DeltaTable(lake / name).to_pyarrow_table().to_pylist())) for name in ALL.tables}


@settings(max_examples=max(4, settings.default.max_examples // 12))  # type: ignore[union-attr]
@given(
    log=metadata_logs(max_steps=40),
    cuts=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    first=st.sets(st.sampled_from(ALL.tables)),
)
def test_all_tables_at_once_have_the_rows_that_each_has_alone(
    tmp_path_factory: pytest.TempPathFactory,
    log: list[RecordBatch],
    cuts: list[int],
    first: set[str],
) -> None:
    """Some tables are up to an earlier offset when the run of all begins."""
    assume(log)
    folder = tmp_path_factory.mktemp("all")
    append_in(MetadataLog.create(folder / "together"), 2 if len(log) > 1 else 1, log)
    shutil.copytree(folder / "together", folder / "alone")
    ends = [*sorted({log[min(at, len(log) - 1)].last_offset for at in cuts}), log[-1].last_offset]
    chosen = [writer for writer in ALL.new_writers() if writer.description.name in first]
    if chosen:
        bring_up(folder / "together", chosen, ends[:1])
    bring_up(folder / "together", ALL.new_writers(), ends)
    for name in ALL.tables:
        (alone,) = (writer for writer in ALL.new_writers() if writer.description.name == name)
        bring_up(folder / "alone", [alone], ends[-1:])
    assert rows_of(folder / "together") == rows_of(folder / "alone")
    shutil.rmtree(folder)
