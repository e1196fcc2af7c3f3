from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlake.delta.metadata_delta import MetadataDelta
from kraftlake.generate.episodes import EPISODES
from kraftlake.generate.plan import Plan
from kraftlake.image.cluster_counts import count_cluster
from kraftlake.image.cluster_health import count_health
from kraftlake.image.metadata_image import MetadataImage
from kraftlake.metadata_log.log import MetadataLog
from kraftlake.publisher.controller_metrics import ControllerMetadataMetrics
from kraftlake.publisher.health_counter import HealthCounter
from kraftlake.records import metadata_records as r
from kraftlake.records.batch import RecordBatch
from kraftlake.records.schema import Message
from kraftlake.replay.loader.batch_loader import MetadataBatchLoader
from kraftlake.replay.loader.manifest import LogDeltaManifest
from kraftlake.replay.queries.changes import LogChanges
from kraftlake.replay.reading.open_reader import LakeReader
from kraftlake.runtime.errors import LakeError
from kraftlake.spark_jobs import counts_by_minute
from kraftlake.tables.lake_table import LakeTable
from kraftlake.tables.metrics.cluster_counts import COUNTS as NAMES
from kraftlake.tables.metrics.cluster_metrics import CLUSTER_METRICS, ClusterMetricsWriter
from tests.few_examples import few_examples
from tests.generate.made_up import MadeUp
from tests.metadata_logs import metadata_logs
from tests.replay.made_logs import data, metadata_version, partition, topic, uuid_of
from tests.tables.folding import fold_into
from tests.tables.logs_for_writers import NEWER, check_refused_in_a_newer_version, cut, taken
from tests.tables.sample_log import LAST_OFFSET, batches_between, lake_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]


def count(image: MetadataImage) -> tuple[int, ...]:
    return (*attrs.astuple(count_cluster(image)), *attrs.astuple(count_health(image)))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, dict[int, tuple[int, ...]]]:
    log = lake_of(tmp_path_factory.mktemp("metrics") / "lake", commits=1)
    (rows,) = fold_into(log, [ClusterMetricsWriter()])
    return rows, {each.offset: count(each.image) for each in LogChanges(LakeReader(log))}


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


def counted(batches: Sequence[RecordBatch]) -> list[tuple[Any, ...]]:
    """The rows of a log as each delta's objects say: the first delta's, then of those after which a count differs."""
    rows: list[tuple[Any, ...]] = []
    metrics, health = ControllerMetadataMetrics(), HealthCounter()

    def publish(delta: MetadataDelta, image: MetadataImage, manifest: LogDeltaManifest) -> None:
        at, before = manifest.provenance, (metrics.counts, health.health)
        elections = (metrics.unclean_leader_elections, metrics.elections_from_eligible_leader_replicas)
        for counter in (metrics, health):
            counter.on_metadata_update(delta, image, manifest)
        counts = (*attrs.astuple(metrics.counts), *attrs.astuple(health.health))
        assert counts == count(image)
        unclean = metrics.unclean_leader_elections - elections[0]
        eligible = metrics.elections_from_eligible_leader_replicas - elections[1]
        if not rows or (metrics.counts, health.health) != before or unclean or eligible:
            rows.append((at.offset, at.epoch, at.timestamp, *counts, unclean, eligible))

    loader = MetadataBatchLoader(publish=publish)
    for batch in batches:
        loader.load_batch(batch)
        loader.flush()
    return rows


def written(pieces: Sequence[Sequence[RecordBatch]]) -> list[tuple[Any, ...]]:
    rows = taken(ClusterMetricsWriter(), pieces, CLUSTER_METRICS.schema)
    times = rows.column("timestamp").cast(pa.int64()).fill_null(-1000).to_pylist()
    plain = [tuple(row.values()) for row in rows.to_pylist()]
    return [(*row[:2], time // 1000, *row[3:]) for row, time in zip(plain, times, strict=True)]


@few_examples
@given(log=metadata_logs(), cuts=st.lists(st.integers(0, 20), max_size=4))
def test_every_row_is_what_the_objects_of_a_delta_count(log: list[RecordBatch], cuts: list[int]) -> None:
    assert written(cut(log, cuts)) == counted(log)


@few_examples
@given(log=metadata_logs(topics_only=True, max_steps=80), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_busy_topics_are_counted_alike_in_columns(log: list[RecordBatch], cuts: list[int]) -> None:
    assert written(cut(log, cuts)) == counted(log)


def test_generated_and_real_logs_are_counted_alike() -> None:
    made = MadeUp(Plan(brokers=7, racks=3, topics=30, partitions=5, seed=5))
    for episode in EPISODES.values():
        made.play(episode)
    for log in (made.batches, batches_between(0, LAST_OFFSET)):
        assert written(cut(log, (3, 50, 200))) == counted(log)


def test_nobody_counts_the_elections_of_a_topic_that_the_same_delta_removes() -> None:
    def unclean(number: int, leader: int) -> r.PartitionChangeRecord:
        change = {"leader": leader, "isr": (leader,), "leader_recovery_state": 1}
        return r.PartitionChangeRecord(partition_id=0, topic_id=uuid_of(number), **change)  # type: ignore[arg-type]

    log = [
        data(0, topic(1), partition(1, isr=(1,)), topic(2), partition(2, isr=(1,))),
        data(4, unclean(1, 2), unclean(2, 2), r.RemoveTopicRecord(topic_id=uuid_of(1))),
        data(7, unclean(2, 1), unclean(2, 2)),
    ]
    rows = written([log])
    assert rows == counted(log)
    assert [row[-2] for row in rows] == [0, 1, 2]


def test_where_a_log_begins_with_no_op_records_the_first_row_is_of_what_counts() -> None:
    log = [data(0, r.NoOpRecord()), data(1, metadata_version()), data(2, topic(1), partition(1))]
    assert [row[0] for row in written([log])] == [3]
    whole = [data(0, metadata_version()), data(1, topic(1), partition(1))]
    assert [row[0] for row in written([whole])] == [0, 2]


@pytest.mark.parametrize("record", NEWER)
def test_a_version_that_nobody_knows_is_refused_as_by_a_loader(record: Message) -> None:
    check_refused_in_a_newer_version(record, counted, lambda log: written([log]))


@pytest.mark.spark
def test_by_minute_each_minute_has_the_counts_at_its_end(
    tmp_path: Path, sample: tuple[pa.Table, dict[int, tuple[int, ...]]], spark: SparkSession
) -> None:
    table = LakeTable(CLUSTER_METRICS, tmp_path)
    table.create("log-1")
    table.append(sample[0], 5736)
    minutes = [row.asDict() for row in counts_by_minute(spark, tmp_path).collect()]
    check_minutes([{**minute, "at": minute["minute"].timestamp()} for minute in minutes], sample[0].to_pylist())


@pytest.mark.spark
def test_counts_of_a_lake_without_the_table_are_refused_with_the_command_that_makes_it(
    tmp_path: Path, spark: SparkSession
) -> None:
    MetadataLog.create(tmp_path)
    with pytest.raises(LakeError, match="has no cluster_metrics/ yet: run `kraftlake tables"):
        counts_by_minute(spark, tmp_path)
    with pytest.raises(LakeError, match="There is no lake at"):
        counts_by_minute(spark, tmp_path / "gone")


def check_minutes(minutes: Sequence[Row], rows: Sequence[Row]) -> None:
    """Each minute, by its begin `at` in epoch seconds, has the counts at its end, and none is left out."""
    for minute in minutes:
        last = [row for row in rows if row["timestamp"].timestamp() < minute["at"] + 60][-1]
        assert {name: minute[name] for name in NAMES} == {name: last[name] for name in NAMES}
    assert {later["at"] - minute["at"] for minute, later in pairwise(minutes)} == {60}
    for name in ("unclean_leader_elections", "elr_leader_elections"):
        assert sum(minute[name] for minute in minutes) == sum(row[name] for row in rows)
