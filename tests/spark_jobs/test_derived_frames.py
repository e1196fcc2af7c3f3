"""The derived tables as frames, by Delta's reader and by the executors' own Python."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.delta_table.table_state import read_table
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.spark_jobs import run_job, table_frame
from kraftlake.spark_jobs.derived_frames import _schema, _whole, disk_files_frame, files_frame
from kraftlake.tables.jobs import JOBS
from tests.tables.sample_log import lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TABLES = sorted({table for job in JOBS.values() for table in job.tables})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables of the first records of the sample, made without a stream."""
    lake = tmp_path_factory.mktemp("frames") / "lake"
    lake_of(lake, commits=2, last=1_500)
    log = DeltaTable(lake / "log")
    log.optimize.compact()
    log.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for job in ("all", "records"):
        run_job(job, lake)
    return lake


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("table", TABLES)
def test_the_executors_read_of_each_table_what_delta_reads(spark: SparkSession, lake: Path, table: str) -> None:
    state = read_table(lake / table)
    schema = _schema(state)
    paths = [lake / table / file.path for file in state.files.values()]
    read = files_frame(spark, paths, partial(_whole, schema), schema)
    by_delta = table_frame(spark, lake, table)
    assert read.schema == by_delta.schema
    assert rows_of(read.toArrow()) == rows_of(by_delta.toArrow())
    assert read.count() == DeltaTable(lake / table).to_pyarrow_table().num_rows
    without_delta = disk_files_frame(spark, state, paths)
    assert [(field.name, field.dataType) for field in without_delta.schema] == [
        (field.name, field.dataType) for field in by_delta.schema
    ]
    assert rows_of(without_delta.toArrow()) == rows_of(by_delta.toArrow())


def test_files_are_read_by_their_own_names_and_none_of_no_files(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "a=1 {b,c}[d]*%20#e"
    shutil.copytree(lake / "topic_history", odd / "topic_history")
    state = read_table(odd / "topic_history")
    paths = [odd / "topic_history" / file.path for file in state.files.values()]
    read = disk_files_frame(spark, state, paths)
    assert rows_of(read.toArrow()) == rows_of(table_frame(spark, lake, "topic_history").toArrow())
    none = disk_files_frame(spark, state, [])
    assert none.columns == read.columns
    assert none.count() == 0


def test_columns_are_chosen(spark: SparkSession, lake: Path) -> None:
    few = table_frame(spark, lake, "events", columns=["kind", "offset"])
    assert few.columns == ["kind", "offset"]
    assert few.count() > 100
    with pytest.raises(UsageError, match="events/ has no column 'who': it is one of offset, "):
        table_frame(spark, lake, "events", columns=["offset", "who"])


def test_a_table_that_is_not_there_is_told_with_the_job_that_makes_it(spark: SparkSession, lake: Path) -> None:
    lake_of(lake.parent / "other", commits=1, last=10)
    with pytest.raises(
        LakeError, match=r"other has no scram_history/ yet: run `kraftlake tables .*other scram_history` first"
    ):
        table_frame(spark, lake.parent / "other", "scram_history")
    with pytest.raises(LakeError, match=r"lake has no mine/\.$"):
        table_frame(spark, lake, "mine")
