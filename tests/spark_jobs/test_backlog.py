"""A backlog is read from the lake's files: no JVM is started for it."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log import MetadataLog, SnapshotFacts
from kraftlake.records.rows import BATCH_COLUMNS, LOG_SCHEMA
from kraftlake.runtime.errors import OffsetError, UsageError
from kraftlake.spark_jobs import StreamOptions, StreamResult, run_job, table_stream
from kraftlake.tables import TableDescription, TableWriter, state_at
from kraftlake.tables.catch_up import table_run
from kraftlake.tables.catch_up.log_fold import LogFold
from kraftlake.tables.local_changes.table import SCHEMA
from tests.replay.made_logs import data, partition, topic
from tests.tables.local_changes.test_writer import published
from tests.tables.sample_log import LAST_OFFSET, append_in, batches_between, image_without_spark, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class JvmStartedError(Exception):
    """Nobody should have asked for a session."""


@pytest.fixture
def any_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any missing record is a backlog, and a JVM is a fault."""

    def no_jvm(*_: object, **__: object) -> None:
        raise JvmStartedError

    monkeypatch.setattr(table_stream, "BACKLOG_FROM", 1)
    monkeypatch.setattr("kraftlake.spark_jobs.session.spark_session", no_jvm)


def replay(lake: Path, spark: SparkSession | None = None, **options: object) -> StreamResult:
    return run_job("replay", lake, spark=spark, options=StreamOptions(**options), snapshot_every_bytes=60_000)  # type: ignore[arg-type]


def local_changes(lake: Path) -> list[dict[str, object]]:
    rows = DeltaTable(lake / "local_changes").to_pyarrow_table().select(SCHEMA.names).to_pylist()
    return sorted(rows, key=lambda row: (row["offset"], row["broker"], row["topic"], row["partition"], row["change"]))


@pytest.mark.usefixtures("any_backlog")
def test_the_tables_are_made_without_a_jvm(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=3)
    done = replay(lake)
    assert (done.offset, done.micro_batches) == (LAST_OFFSET, 0)
    assert done.image == image_without_spark(lake)
    assert len(done.snapshots) > 1
    assert local_changes(lake) == published(batches_between(0, LAST_OFFSET)).to_pylist()


@pytest.mark.usefixtures("any_backlog")
@pytest.mark.parametrize("job", ["history", "all"])
def test_histories_begin_with_a_snapshot_that_nothing_follows(tmp_path: Path, job: str) -> None:
    lake = tmp_path / "lake"
    log = MetadataLog.create(lake, start_offset=1)
    held = [data(1, topic(0), partition(0, replicas=(1, 2)))]
    log.append(held)
    log.add_snapshot(SnapshotFacts(end_offset=3, epoch=1, last_contained_log_timestamp=0), held)
    for begins, first in ((-1, 1), (2, 3)):
        done = run_job(job, lake)
        assert (done.base_offset, done.to_json()["firstOffset"], done.offset) == (begins, first, 2)
        (row,) = state_at(lake, 2).to_pylist()
        assert (row["topic"], row["valid_from_offset"], row["valid_to_offset"]) == ("topic-0", 2, None)
        for table in ("partition_history", "scram_history"):
            with pytest.raises(OffsetError, match=rf"{table}/ of .* begins at offset 2: .* what was so at 1\."):
                state_at(lake, 1, table)
    assert state_at(lake, 2, "scram_history").num_rows == 0
    log.append([data(3, partition(0, replicas=(1, 3)))])
    run_job(job, lake)
    (row,) = state_at(lake, 3).to_pylist()
    assert (row["replicas"], row["valid_from_offset"], state_at(lake, 2).num_rows) == ([1, 3], 3, 1)


@pytest.mark.usefixtures("any_backlog")
def test_it_is_read_no_further_than_asked(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=3)
    batch = batches_between(0, 1500)[-1]
    done = replay(lake, trigger="50 milliseconds", until_offset=batch.base_offset)
    assert done.offset == batch.last_offset
    assert replay(lake).base_offset == batch.last_offset
    assert local_changes(lake) == published(batches_between(0, LAST_OFFSET)).to_pylist()


@pytest.mark.usefixtures("any_backlog")
def test_a_checkpoint_from_before_it_goes(tmp_path: Path) -> None:
    lake, checkpoint = tmp_path / "lake", tmp_path / "checkpoint"
    lake_of(lake, commits=1, last=500)
    (checkpoint / "commits").mkdir(parents=True)
    replay(lake, checkpoint=checkpoint)
    assert not checkpoint.exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "letter").touch()
    append_in(MetadataLog.open(lake), 1, batches_between(501, 900))
    with pytest.raises(UsageError, match="holds 'letter', which is no part of a stream's checkpoint"):
        replay(lake, checkpoint=other)


@pytest.mark.usefixtures("any_backlog")
def test_who_asks_for_micro_batches_of_so_many_files_gets_them(tmp_path: Path) -> None:
    lake_of(tmp_path / "lake", commits=2, last=500)
    with pytest.raises(JvmStartedError):
        replay(tmp_path / "lake", max_files=1)


@pytest.mark.usefixtures("any_backlog")
def test_it_is_published_in_pieces_of_bounded_size_whatever_the_tables_that_it_is_read_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_run, "_PUBLISH_BYTES", 50_000)
    monkeypatch.setattr(
        "kraftlake.metadata_log.delta_table.data_files.ROW_GROUP_ROWS", 200
    )  # a few of them make one table
    monkeypatch.setattr("kraftlake.tables.catch_up.log_fold._PIECE_ROWS", 300)
    lake_of(tmp_path / "lake", commits=20)
    told: list[int] = []
    run_job("history", tmp_path / "lake", on_progress=lambda offset, _: told.append(offset))
    assert len(told) > 5
    assert told[-1] == LAST_OFFSET


@pytest.mark.spark
def test_the_stream_goes_on_behind_it(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = tmp_path / "lake"
    whole = batches_between(0, LAST_OFFSET)
    first, rest = whole[: len(whole) * 2 // 3], whole[len(whole) * 2 // 3 :]
    append_in(log := MetadataLog.create(lake), 2, first)
    monkeypatch.setattr(table_stream, "BACKLOG_FROM", first[-1].last_offset)
    assert replay(lake, spark).micro_batches == 0
    append_in(log, 2, rest)
    done = replay(lake, spark)
    assert (done.base_offset, done.offset) == (first[-1].last_offset, LAST_OFFSET)
    assert done.micro_batches > 0
    assert local_changes(lake) == published([*first, *rest]).to_pylist()


class ColumnsOfRows(TableWriter):
    """A table of what it was given."""

    description = TableDescription("given", "Nothing.", ((pa.field("offset", pa.int64()), "an offset"),))
    wants_rows = True
    wants_changes = False
    given: ClassVar[set[tuple[str, ...]]] = set()

    def take_rows(self, rows: pa.Table) -> None:
        self.given.add(tuple(rows.column_names))


class TypesOfRows(ColumnsOfRows):
    log_columns = (*BATCH_COLUMNS, "type")


@pytest.mark.usefixtures("any_backlog")
def test_no_more_of_the_log_is_read_than_a_writer_needs(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1, last=500)
    for writer, columns in (ColumnsOfRows(), {*BATCH_COLUMNS}), (TypesOfRows(), {*BATCH_COLUMNS, "type"}):
        writer.given.clear()
        table_stream.run_tables("given", lake, [writer])
        assert [*writer.given] == [tuple(name for name in LOG_SCHEMA.names if name in columns)]
        shutil.rmtree(lake / "given")


class LateRows(TableWriter):
    """A table of offsets, by a writer that is behind the images."""

    description = TableDescription("late", "Nothing.", ((pa.field("offset", pa.int64()), "an offset"),))
    wants_rows = True
    wants_changes = False
    wants_images = True

    def __init__(self, go: threading.Event) -> None:
        super().__init__()
        self._go = go

    def take_rows(self, rows: pa.Table) -> None:
        self._go.wait(30)
        self.rows.add_table(rows.select(["offset"]))


@pytest.mark.usefixtures("any_backlog")
def test_a_writer_that_is_behind_is_waited_for_before_its_table_covers_an_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    lake_of(lake, commits=1)
    monkeypatch.setattr(table_run, "_PUBLISH_BYTES", 1)
    told: list[tuple[int, int]] = []

    def tell(offset: int, _: int) -> None:
        told.append((offset, DeltaTable(lake / "late").to_pyarrow_table().num_rows))

    go, wait = threading.Event(), LogFold.wait

    def wait_at_last(fold: LogFold) -> None:
        go.set()
        wait(fold)

    monkeypatch.setattr(LogFold, "wait", wait_at_last)
    table_stream.run_tables("late", lake, [LateRows(go)], on_progress=tell)
    assert len(told) > 1
    assert all(rows == offset + 1 for offset, rows in told)
    assert told[-1][0] == LAST_OFFSET
