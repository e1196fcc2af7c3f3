"""The derived tables as frames, by Delta's reader and by the executors' own Python."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import kraftlake
from kraftlake.metadata_log.delta_table.delta_log import read_table
from kraftlake.runtime.errors import LakeError, UsageError
from kraftlake.spark_jobs import table_frame
from kraftlake.spark_jobs.derived_frames import _schema, _whole, disk_files_frame, files_frame
from kraftlake.tables.catch_up.updating import update_tables
from kraftlake.tables.jobs import JOBS
from kraftlake.tables.lake_table import LakeTable, TableDescription
from tests.tables.sample_log import lake_of
from tests.tables.test_old_lakes import old_lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
TABLES = sorted({table for job in JOBS.values() for table in job.tables})
READ = TABLES if LONG else ["broker_history", "partition_history", "quota_history", "records"]
"""The tables that are read in each way: in the quick profile they have, between them, columns of every type."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables of the first records of the sample, made without a stream."""
    lake = tmp_path_factory.mktemp("frames") / "lake"
    lake_of(lake, commits=2, last=1_500)
    log = DeltaTable(lake / "log")
    log.optimize.compact()
    log.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    update_tables(lake, TABLES)
    return lake


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


@pytest.mark.parametrize("table", READ)
def test_the_executors_read_of_each_table_what_delta_reads(spark: SparkSession, lake: Path, table: str) -> None:
    state = read_table(lake / table)
    schema = _schema(state)
    paths = [lake / table / file.path for file in state.files.values()]
    read = files_frame(spark, paths, partial(_whole, schema), schema)
    by_delta = spark.read.format("delta").load(str(lake / table))
    assert read.schema == by_delta.schema
    expected = rows_of(by_delta.toArrow())
    assert rows_of(read.toArrow()) == expected
    assert len(expected) == DeltaTable(lake / table).to_pyarrow_table().num_rows
    without_delta = table_frame(spark, lake, table)
    assert [(field.name, field.dataType) for field in without_delta.schema] == [
        (field.name, field.dataType) for field in by_delta.schema
    ]
    assert rows_of(without_delta.toArrow()) == expected


def test_files_are_read_by_their_own_names_and_none_of_no_files(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "a=1 {b,c}[d]*%20#e"
    shutil.copytree(lake / "topic_history", odd / "topic_history")
    state = read_table(odd / "topic_history")
    paths = [odd / "topic_history" / file.path for file in state.files.values()]
    read = disk_files_frame(spark, state, paths)
    expected = rows_of(table_frame(spark, lake, "topic_history").toArrow())
    assert rows_of(read.toArrow()) == expected
    assert read.count() == len(expected)
    none = disk_files_frame(spark, state, [])
    assert none.columns == read.columns
    assert none.count() == 0


def test_columns_are_chosen(spark: SparkSession, lake: Path) -> None:
    few = table_frame(spark, lake, "events", columns=["kind", "offset"])
    assert few.columns == ["kind", "offset"]
    assert few.count() > 100
    with pytest.raises(UsageError, match="events/ has no column 'who': it is one of offset, "):
        table_frame(spark, lake, "events", columns=["offset", "who"])


def test_a_table_that_is_not_there_is_reported_with_the_job_that_makes_it(spark: SparkSession, lake: Path) -> None:
    lake_of(lake.parent / "other", commits=1, last=10)
    with pytest.raises(
        LakeError, match=r"other has no scram_history/ yet: run `kraftlake tables .*other scram_history` first"
    ):
        table_frame(spark, lake.parent / "other", "scram_history")
    with pytest.raises(LakeError, match=r"lake has no mine/\.$"):
        table_frame(spark, lake, "mine")


def test_many_lakes_are_read_as_one_table_by_cluster_and_by_name(
    spark: SparkSession, lake: Path, tmp_path: Path
) -> None:
    """The second lake's tables are of a release without the column `cluster_id`."""
    whole = old_lake("whole", tmp_path)
    assert "cluster_id" not in table_frame(spark, whole, "events").columns
    both = table_frame(spark, [lake, whole, str(lake)], "events")
    assert both.columns == [*table_frame(spark, lake, "events").columns, "lake"]
    cluster = kraftlake.open(whole).cluster_id
    for place, values in ((lake, (None, "lake")), (whole, (cluster, "whole"))):
        expected = DeltaTable(place / "events").to_pyarrow_table()
        found = both.where(both.lake == values[1]).toArrow()
        assert {(row["cluster_id"], row["lake"]) for row in found.to_pylist()} == {values}
        assert rows_of(found.select(expected.schema.names)) == rows_of(expected)
    assert both.count() == sum(DeltaTable(place / "events").to_pyarrow_table().num_rows for place in (lake, whole))
    few = table_frame(spark, [lake, whole], "events", columns=["lake", "offset"])
    assert few.columns == ["lake", "offset"]
    assert table_frame(spark, [lake], "events", columns=["lake"]).distinct().collect() == [("lake",)]
    assert table_frame(spark, f"{tmp_path}/*", "events", columns=["lake"]).distinct().collect() == [("whole",)]


def test_many_lakes_of_which_one_lacks_the_table_are_refused(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    lake_of(tmp_path / "other", commits=1, last=10)
    with pytest.raises(LakeError, match=r"other has no events/ yet: run `kraftlake tables .*other events` first"):
        table_frame(spark, [lake, tmp_path / "other"], "events")
    with pytest.raises(UsageError, match=r"events/ has no column 'who': it is one of .*cluster_id, lake$"):
        table_frame(spark, [lake, lake], "events", columns=["who"])
    other = [(pa.field("offset", pa.string(), nullable=False), "an offset as text")]
    LakeTable(TableDescription("events", "Of another kind.", tuple(other)), tmp_path / "other").create("log-1")
    with pytest.raises(LakeError, match=r"the tables events/ of these lakes don't have the same columns: .*offset"):
        table_frame(spark, [lake, tmp_path / "other"], "events")
    with pytest.raises(UsageError, match="name at least one lake"):
        table_frame(spark, [], "events")
