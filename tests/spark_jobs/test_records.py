"""The table `records/`: what its rows say is in tests/records/test_typed_rows.py, that none is lost or doubled here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kraftlake.kafka_files.directory import open_directory
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.snapshots.snapshot_rows import SnapshotFacts
from kraftlake.records.typed_rows import typed_rows, typed_schema
from kraftlake.runtime.errors import CorruptDataError, OffsetError
from kraftlake.spark_jobs import StreamOptions, StreamResult, records, run_job
from kraftlake.tables.records_table import RECORDS
from tests.tables.sample_log import LAST_OFFSET, SAMPLE, append_in, batches_between, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def run_records(lake: Path, spark: SparkSession) -> StreamResult:
    return run_job("records", lake, spark=spark)


def rows_of(lake: Path) -> pa.Table:
    table = DeltaTable(lake / "records").to_pyarrow_table().sort_by("offset")
    return table.drop_columns("cluster_id").cast(typed_schema())


def expected(lake: Path) -> pa.Table:
    return typed_rows(MetadataLog.open(lake).rows(), typed_schema())


def test_the_table_is_the_log_whatever_runs_there_were(tmp_path: Path, spark: SparkSession) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=3, last=2000)
    cut = MetadataLog.open(lake).end_offset
    first = run_job("records", lake, spark=spark, options=StreamOptions(max_records=900))
    assert first.rows == {"records": cut}
    assert first.micro_batches == first.steps == 3
    append_in(log, 4, batches_between(cut, LAST_OFFSET))
    assert run_records(lake, spark).rows == {"records": LAST_OFFSET + 1 - cut}
    assert run_records(lake, spark).rows == {"records": 0}
    assert rows_of(lake).equals(expected(lake))


def lake_with_a_backlog(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake of five files, all of which executors write in commits of 1,400 records."""
    lake = folder / "lake"
    lake_of(lake, commits=5)
    monkeypatch.setattr(records, "RECORDS_A_PART", 700)
    monkeypatch.setattr(records, "_PARTS_A_COMMIT", 2)
    return lake


def test_executors_write_a_backlog_in_commits_and_a_killed_run_goes_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_with_a_backlog(tmp_path, monkeypatch)
    offsets: list[int] = []

    def killed(offset: int, end: int) -> None:
        offsets.append(offset)
        if len(offsets) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job("records", lake, spark=spark, on_progress=killed)
    assert 1000 < offsets[0] < offsets[1] < LAST_OFFSET
    assert rows_of(lake).num_rows == offsets[1] + 1
    result = run_records(lake, spark)
    assert result.offset == LAST_OFFSET
    assert rows_of(lake).equals(expected(lake))


def test_what_is_wrong_with_a_backlog_is_one_sentence_and_what_was_committed_stays(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = lake_with_a_backlog(tmp_path, monkeypatch)
    (span,) = MetadataLog.open(lake).files_between(LAST_OFFSET, LAST_OFFSET)
    last = lake / "log" / span.file.path
    content = last.read_bytes()
    last.unlink()
    with pytest.raises(CorruptDataError, match=rf"^[^\n]*{last.name}[^\n]*$"):
        run_records(lake, spark)
    assert 0 < rows_of(lake).num_rows < LAST_OFFSET
    last.write_bytes(content)
    assert run_records(lake, spark).offset == LAST_OFFSET
    assert rows_of(lake).equals(expected(lake))


def test_a_trimmed_log_begins_where_it_begins_and_is_refused_where_rows_are_missing(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = tmp_path / "lake"
    log = lake_of(lake, commits=20, last=3100)
    shutil.copytree(lake, tmp_path / "left-behind")
    run_records(tmp_path / "left-behind", spark)
    for each in (lake, tmp_path / "left-behind"):
        grown = MetadataLog.open(each)
        append_in(grown, 20, batches_between(log.end_offset, LAST_OFFSET))
        (snapshot,) = [each for each in open_directory(SAMPLE).snapshots if each.end_offset == 4593]
        grown.add_snapshot(
            SnapshotFacts(end_offset=4593, epoch=1, last_contained_log_timestamp=1), list(snapshot.batches())
        )
        assert Upkeep(each).trim(4593, stream_lag_ms=0, force=True).new_start > log.end_offset
    run_records(lake, spark)
    start = MetadataLog.open(lake).start_offset
    assert rows_of(lake).column("offset")[0].as_py() == start
    assert rows_of(lake).equals(expected(lake))
    with pytest.raises(OffsetError, match=f"records/ of .* ends at offset {log.end_offset - 1}, .* trimmed.*{start}"):
        run_records(tmp_path / "left-behind", spark)


@pytest.fixture(scope="module")
def short_lake(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """A lake with the table of some hundred records."""
    lake = tmp_path_factory.mktemp("records") / "lake"
    lake_of(lake, commits=1, last=400)
    run_records(lake, spark)
    return lake


def test_sql_sees_one_type_as_columns(short_lake: Path, spark: SparkSession) -> None:
    query = f"SELECT offset, topic_record.* FROM delta.`{short_lake}/records` WHERE type = 'TOPIC_RECORD'"
    frame = spark.sql(query)
    assert frame.columns == ["offset", "name", "topic_id"]
    assert frame.count() > 10


def test_the_table_says_what_its_columns_mean(short_lake: Path, spark: SparkSession) -> None:
    described = spark.sql(f"DESCRIBE TABLE delta.`{short_lake}/records`").collect()
    comments = {row.col_name: row.comment for row in described if row.col_name in RECORDS.schema.names}
    assert comments == {field.name: meaning for field, meaning in RECORDS.columns}
    assert comments["topic_record"] == "TOPIC_RECORD: a topic has been created; null in rows of other types"
