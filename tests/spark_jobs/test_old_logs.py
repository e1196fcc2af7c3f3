"""A real log of Kafka 3.3's metadata.version: Kafka 4 can't replay it, but its records can be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from kraftlake.metadata_log.log import MetadataLog
from kraftlake.records.typed_rows import typed_rows, typed_schema
from kraftlake.replay.imports.import_log import import_source
from kraftlake.runtime.errors import ReplayError
from kraftlake.spark_jobs import (
    StreamOptions,
    build_snapshot,
    image_frame,
    local_changes_frame,
    read_records,
    run_job,
)
from kraftlake.tables.jobs import JOBS
from tests.at_least_one import at_least_one
from tests.cli.running import run
from tests.tables.sample_log import SAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OFFSETS = 478
MESSAGE = r"^offset 1, FEATURE_LEVEL_RECORD: metadata\.version 4 is below 7 \(3\.3-IV3\)[^\n]*$"
LONG = os.environ.get("KRAFTLAKE_TESTS") == "long"
REPLAYING = sorted(set(JOBS) - {"records"}) if LONG else ["all"]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    report = import_source(str(SAMPLES / "legacy-33" / "log"), str(tmp_path / "lake"), cluster_id=None)
    assert report.records == OFFSETS
    return tmp_path / "lake"


@pytest.mark.parametrize("job", REPLAYING)
def test_a_job_that_replays_names_the_offset_and_its_tables_stay_empty(
    spark: SparkSession, lake: Path, job: str
) -> None:
    small, whole = StreamOptions(max_records=3_000), StreamOptions()
    for options in (small, whole) if LONG else (small,):
        with pytest.raises(ReplayError, match=MESSAGE):
            run_job(job, lake, spark=spark, options=options)
    for table in at_least_one(JOBS[job].tables):
        assert DeltaTable(lake / table).to_pyarrow_table().num_rows == 0
    assert not MetadataLog.open(lake).snapshots()


FOLDS: list[Callable[[Any, Path], Any]] = [
    build_snapshot,
    lambda spark, lake: image_frame(spark, lake, OFFSETS - 1).count(),
    lambda spark, lake: local_changes_frame(spark, lake, 0, OFFSETS - 1).count(),
]


@pytest.mark.parametrize("fold", FOLDS, ids=["build_snapshot", "image_frame", "local_changes_frame"])
def test_a_distributed_fold_names_the_offset(spark: SparkSession, lake: Path, fold: Callable[[Any, Path], Any]) -> None:
    with pytest.raises(Exception, match=r"offset 1, FEATURE_LEVEL_RECORD: metadata\.version 4 is below 7"):
        fold(spark, lake)
    assert not MetadataLog.open(lake).snapshots()


def test_its_records_are_read_and_kept_all_the_same(spark: SparkSession, lake: Path) -> None:
    assert run_job("records", lake, spark=spark).rows == {"records": OFFSETS}
    kept = DeltaTable(lake / "records").to_pyarrow_table().sort_by("offset").drop_columns("cluster_id")
    assert kept.cast(typed_schema()).equals(typed_rows(MetadataLog.open(lake).rows(), typed_schema()))
    fenced = read_records(spark, lake, "FenceBrokerRecord").count()
    assert fenced == read_records(spark, SAMPLES / "legacy-33" / "log", "FenceBrokerRecord").count() > 0


def test_the_commands_end_with_one_sentence(lake: Path) -> None:
    for words in (["events"], ["snapshot", "--json"]):
        result = run("spark", *words, lake, code=1)
        (sentence,) = result.stderr.splitlines()
        assert "offset 1, FEATURE_LEVEL_RECORD: metadata.version 4 is below 7" in sentence
        assert result.stdout == ""
