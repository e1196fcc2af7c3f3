from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
import pytest

from kraftlake.delta import topics_delta
from kraftlake.generate import Plan, generate_lake
from kraftlake.image import ClusterCounts, count_cluster
from kraftlake.metadata_log import MetadataLog
from kraftlake.spark_jobs.cluster_metrics import CLUSTER_METRICS, ClusterMetricsWriter, counts_by_minute
from kraftlake.spark_jobs.lake_table import LakeTable
from kraftlake.spark_jobs.table_writer import Published, TableWriter
from tests.spark_jobs.folding import fold_into
from tests.spark_jobs.sample_log import batches_between, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [field.name for field in attrs.fields(ClusterCounts)]
Row = dict[str, Any]


class Recount(TableWriter):
    """Counts each published image anew."""

    description = CLUSTER_METRICS

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[int, tuple[int, ...]] = {}

    def publish(self, change: Published) -> None:
        self.counts[change.offset] = attrs.astuple(count_cluster(change.image))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, dict[int, tuple[int, ...]]]:
    log = lake_of(tmp_path_factory.mktemp("metrics") / "lake", commits=1)
    recount = Recount()
    rows, _ = fold_into(log, [ClusterMetricsWriter(), recount])
    return rows, recount.counts


def test_the_last_row_at_or_before_an_offset_has_its_counts(
    sample: tuple[pa.Table, dict[int, tuple[int, ...]]],
) -> None:
    rows, counts = sample
    by_offset = {row["offset"]: tuple(row[name] for name in NAMES) for row in rows.to_pylist()}
    assert len(by_offset) == rows.num_rows > 50
    current: tuple[int, ...] = ()
    for offset, expected in counts.items():
        current = by_offset.get(offset, current)
        assert current == expected, offset


def test_elections_are_those_of_each_delta(sample: tuple[pa.Table, dict[int, tuple[int, ...]]]) -> None:
    rows = sample[0].to_pylist()
    assert sum(row["unclean_leader_elections"] for row in rows) > 0
    assert sum(row["elr_leader_elections"] for row in rows) > 0


@pytest.mark.parametrize("covers", [100, 1400, 4000])
def test_a_table_that_goes_on_gets_the_rows_that_it_lacks(
    tmp_path: Path, sample: tuple[pa.Table, dict[int, tuple[int, ...]]], covers: int
) -> None:
    log = lake_of(tmp_path / "lake", commits=1)
    end = next(batch.last_offset for batch in batches_between(covers, 5000))
    (rows,) = fold_into(log, [ClusterMetricsWriter()], covers=end)
    assert rows.to_pylist() == [row for row in sample[0].to_pylist() if row["offset"] > end]


def test_many_changes_at_once_are_counted_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate_lake(tmp_path / "lake", Plan(brokers=7, racks=3, topics=30, partitions=5, records=6_000, seed=5))
    log = MetadataLog.open(tmp_path / "lake")
    (one_by_one,) = fold_into(log, [ClusterMetricsWriter()])
    monkeypatch.setattr(topics_delta, "MERGE_FROM", 1)
    monkeypatch.setattr(topics_delta, "MERGE_COLD_FROM", 1)
    (at_once,) = fold_into(log, [ClusterMetricsWriter()])
    assert at_once.equals(one_by_one)
    assert at_once.num_rows > 100


@pytest.mark.spark
def test_by_minute_each_minute_has_the_counts_at_its_end(
    tmp_path: Path, sample: tuple[pa.Table, dict[int, tuple[int, ...]]], spark: SparkSession
) -> None:
    table = LakeTable(CLUSTER_METRICS, tmp_path)
    table.create("log-1")
    table.append(sample[0], 5736)
    minutes = [row.asDict() for row in counts_by_minute(spark, tmp_path).collect()]
    rows = sample[0].to_pylist()
    for minute in minutes:
        ends = minute["minute"].timestamp() + 60
        last = [row for row in rows if row["timestamp"].timestamp() < ends][-1]
        assert {name: minute[name] for name in NAMES} == {name: last[name] for name in NAMES}
    gaps = {later["minute"] - minute["minute"] for minute, later in pairwise(minutes)}
    assert gaps == {timedelta(minutes=1)}
    for name in ("unclean_leader_elections", "elr_leader_elections"):
        assert sum(minute[name] for minute in minutes) == sum(row[name] for row in rows)
