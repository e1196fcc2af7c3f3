"""A run over tables: what it reads of the log, when it commits, and what writers of one's own get."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.rows import BATCH_COLUMNS, LOG_SCHEMA
from kraftlake.runtime.errors import LakeError, OffsetError
from kraftlake.tables.catch_up import table_run
from kraftlake.tables.catch_up.log_fold import LogFold
from kraftlake.tables.catch_up.table_run import Progress
from kraftlake.tables.catch_up.updating import update_tables, writers_of
from kraftlake.tables.history.state_at import state_at
from kraftlake.tables.jobs import ALL, HISTORY
from kraftlake.tables.lake_table import TableDescription
from kraftlake.tables.table_writer import TableWriter
from tests.replay.made_logs import data, partition, topic
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, lake_of


def rows_in(lake: Path, table: str) -> list[str]:
    return sorted(map(str, DeltaTable(lake / table).to_pyarrow_table().to_pylist()))


def run_once(lake: Path, writer: TableWriter, on_progress: Progress | None = None) -> None:
    with table_run.table_run("given", lake, [writer], on_progress=on_progress) as run:
        bring_up(run, run.end_offset - 1)


def bring_up(run: table_run.TableRun, to_offset: int) -> None:
    run.begin()
    run.catch_up(to_offset)
    run.finish()


@pytest.mark.parametrize("tables", [HISTORY.tables, ALL.tables], ids=["history", "all"])
def test_histories_begin_with_a_snapshot_that_nothing_follows(tmp_path: Path, tables: tuple[str, ...]) -> None:
    lake = tmp_path / "lake"
    log = MetadataLog.create(lake, start_offset=2)
    held = [data(2, topic(0), partition(0, replicas=(1, 2)))]
    log.append(held)
    log.add_snapshot(SnapshotFacts(end_offset=4, epoch=1, last_contained_log_timestamp=0), held)
    for begins, first in ((-1, 2), (3, 4)):
        done = update_tables(lake, tables)
        assert (done.base_offset, done.to_json()["firstOffset"], done.offset) == (begins, first, 3)
        (row,) = state_at(lake, 3).to_pylist()
        assert (row["topic"], row["valid_from_offset"], row["valid_to_offset"]) == ("topic-0", 3, None)
        for table in ("partition_history", "scram_history"):
            with pytest.raises(OffsetError, match=rf"{table}/ of .* begins at offset 3: .* what was so at 2\."):
                state_at(lake, 2, table)
    assert state_at(lake, 3, "scram_history").num_rows == 0
    log.append([data(4, partition(0, replicas=(1, 3)))])
    update_tables(lake, tables)
    (row,) = state_at(lake, 4).to_pylist()
    assert (row["replicas"], row["valid_from_offset"], state_at(lake, 3).num_rows) == ([1, 3], 4, 1)


def test_it_is_published_in_pieces_of_bounded_size_whatever_the_tables_that_it_is_read_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_run, "_PUBLISH_BYTES", 50_000)
    for module in ("data_files", "scan"):  # a few of them make one table
        monkeypatch.setattr(f"kraftlake.metadata_log.delta_table.{module}.ROW_GROUP_ROWS", 200)
    monkeypatch.setattr("kraftlake.tables.catch_up.log_fold._PIECE_ROWS", 300)
    lake_of(tmp_path / "lake", commits=20)
    offsets: list[int] = []
    update_tables(tmp_path / "lake", HISTORY.tables, on_progress=lambda offset, _: offsets.append(offset))
    assert len(offsets) > 5
    assert offsets[-1] == LAST_OFFSET


@pytest.mark.parametrize("when", ["begin", "open"])
@pytest.mark.parametrize("tables", [("events",), ("topic_history",)], ids=["events", "history"])
def test_a_run_that_another_overtakes_while_it_begins_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: tuple[str, ...], when: str
) -> None:
    """No lock separates the two: they are on different machines."""
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=1000)
    update_tables(lake, tables)
    append_in(MetadataLog.open(lake), 2, batches_between(1001, LAST_OFFSET))
    others = list[int]()

    def overtake() -> None:
        if not others:
            others.append(MetadataLog.open(lake).batches_end(2000, 1) - 1)
            with table_run.unlocked_run("other", lake, writers_of(tables)) as other:
                bring_up(other, others[0])

    writers = writers_of(tables)
    owner, name = (table_run.TableRun, "begin") if when == "begin" else (type(writers[0]), "open")
    wrapped = getattr(owner, name)

    def overtaken(*arguments: object) -> None:
        overtake()
        wrapped(*arguments)

    with table_run.unlocked_run("one", lake, writers) as run:
        monkeypatch.setattr(owner, name, overtaken)
        with pytest.raises(LakeError, match=rf"another run writes .*{tables[0]}, it is at offset"):
            bring_up(run, LAST_OFFSET)
    assert update_tables(lake, tables).offset == LAST_OFFSET
    made = rows_in(lake, tables[0])
    shutil.rmtree(lake / tables[0])
    update_tables(lake, tables)
    assert made == rows_in(lake, tables[0])


class ColumnsOfRows(TableWriter):
    """A table of what it was given."""

    description = TableDescription("given", "Nothing.", ((pa.field("offset", pa.int64()), "an offset"),))
    given: ClassVar[set[tuple[str, ...]]] = set()

    def take_rows(self, rows: pa.Table) -> None:
        self.given.add(tuple(rows.column_names))


class TypesOfRows(ColumnsOfRows):
    log_columns = (*BATCH_COLUMNS, "type")


def test_no_more_of_the_log_is_read_than_a_writer_needs(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=500)
    for writer, columns in (ColumnsOfRows(), {*BATCH_COLUMNS}), (TypesOfRows(), {*BATCH_COLUMNS, "type"}):
        writer.given.clear()
        run_once(lake, writer)
        assert [*writer.given] == [tuple(name for name in LOG_SCHEMA.names if name in columns)]
        shutil.rmtree(lake / "given")


class LateRows(TableWriter):
    """A table of offsets, by a writer that is behind the images."""

    description = TableDescription("late", "Nothing.", ((pa.field("offset", pa.int64()), "an offset"),))

    def __init__(self, go: threading.Event) -> None:
        super().__init__()
        self._go = go

    def take_rows(self, rows: pa.Table) -> None:
        self._go.wait(30)
        self.rows.add_table(rows.select(["offset"]))


def test_a_writer_that_is_behind_is_waited_for_before_its_table_covers_an_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    monkeypatch.setattr(table_run, "_PUBLISH_BYTES", 1)
    progress: list[tuple[int, int]] = []

    def on_progress(offset: int, _: int) -> None:
        progress.append((offset, DeltaTable(lake / "late").to_pyarrow_table().num_rows))

    go, wait = threading.Event(), LogFold.wait

    def wait_at_last(fold: LogFold) -> None:
        go.set()
        wait(fold)

    monkeypatch.setattr(LogFold, "wait", wait_at_last)
    run_once(lake, LateRows(go), on_progress)
    assert len(progress) > 1
    assert all(rows == offset + 1 for offset, rows in progress)
    assert progress[-1][0] == LAST_OFFSET
