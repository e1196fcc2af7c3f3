"""`spark.readStream.format("kraft")` in a real session; what Spark asks of the source is in test_log_stream.py."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from kraftlake.metadata_log.maintenance.upkeep import Upkeep
from kraftlake.metadata_log.maintenance.upkeep_policy import UpkeepPolicy
from tests.tables.sample_log import LAST_OFFSET, SAMPLE, append_in, batches_between, lake_of
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

pytestmark = pytest.mark.spark

COLUMNS = (
    "offset LONG, type STRING, topic_record STRUCT<name: STRING>, user_scram_credential_record STRUCT<salt: BINARY>"
)
COMPACT = UpkeepPolicy(compact_from=2, checkpoint_after=2, keep_commits=1, orphan_age_ms=0, exclusive=True)


OWN = {"columns": "log", "showSecrets": "true"}


class Sink:
    """The rows of a stream, step by step, each once."""

    def __init__(self, spark: SparkSession, checkpoint: Path) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self.steps: list[list[dict[str, Any]]] = []

    def start(self, lake: Path, trigger: dict[str, Any], schema: str | None = None, **options: Any) -> StreamingQuery:
        reader = self._spark.readStream.format("kraft").options(**options)
        stream = (reader if schema is None else reader.schema(schema)).load(str(lake))
        writer = stream.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self._checkpoint))
        return writer.trigger(**trigger).start()

    def run(self, lake: Path, **options: Any) -> None:
        """Until all that is there now has come."""
        self.start(lake, {"availableNow": True}, **options).awaitTermination(120)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for step in self.steps for row in step]

    def _take(self, frame: DataFrame, _: int) -> None:
        self.steps.append(rows_of(frame))


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    return sorted(frame.toArrow().to_pylist(), key=lambda row: int(row["offset"]))


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path) -> Sink:
    return Sink(spark, tmp_path / "checkpoint")


def test_steps_bring_the_rows_of_a_read_also_after_a_compaction_and_a_restart(
    spark: SparkSession, sink: Sink, tmp_path: Path
) -> None:
    log = lake_of(tmp_path / "lake", commits=3, last=3000)
    sink.run(tmp_path / "lake", schema=COLUMNS, maxRecordsPerTrigger=2000)
    ends = [step[-1]["offset"] + 1 for step in sink.steps]
    assert len(ends) == 2
    assert 1900 < ends[0] <= 2000
    append_in(log, 3, batches_between(log.end_offset, LAST_OFFSET))
    Upkeep(tmp_path / "lake", COMPACT).run()
    sink.run(tmp_path / "lake", schema=COLUMNS)
    assert len(sink.steps) == 3
    read = spark.read.format("kraft")
    assert sink.rows == rows_of(read.schema(COLUMNS).load(str(tmp_path / "lake")))
    assert {"salt": None} in [row["user_scram_credential_record"] for row in sink.rows]
    streamed = spark.readStream.format("kraft").option("type", "ConfigRecord").load(str(tmp_path / "lake"))
    assert (
        streamed.schema == spark.read.format("kraft").option("type", "ConfigRecord").load(str(tmp_path / "lake")).schema
    )


def test_a_running_stream_brings_what_is_appended_while_the_lake_is_compacted(sink: Sink, tmp_path: Path) -> None:
    log = lake_of(tmp_path / "lake", commits=2, last=1000)
    held = log.end_offset
    query = sink.start(tmp_path / "lake", {"processingTime": "0 seconds"}, startingOffset="latest", **OWN)
    try:
        await_that(lambda: query.lastProgress is not None or query.status["message"].startswith("Waiting"), query)
        for last in (3000, LAST_OFFSET):
            append_in(log, 2, batches_between(log.end_offset, last))
            Upkeep(tmp_path / "lake", COMPACT).run()
            log.refresh()
            await_that(lambda: bool(sink.rows) and sink.rows[-1]["offset"] + 1 == log.end_offset, query)
    finally:
        query.stop()
    assert sink.rows == log.rows(held).to_pylist()


def await_that(reached: Callable[[], bool], query: StreamingQuery) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_what_can_not_be_streamed_fails_the_query_in_one_sentence(
    spark: SparkSession, sink: Sink, tmp_path: Path
) -> None:
    lake_of(tmp_path / "lake", commits=1, last=300)
    sink.run(tmp_path / "lake", type="TopicRecord")
    shutil.rmtree(tmp_path / "lake")
    lake_of(tmp_path / "lake", commits=1, last=300)
    for lake, asking, reason in (
        (tmp_path / "lake", sink, "the checkpoint of this stream is of another log"),
        (SAMPLE, Sink(spark, tmp_path / "other"), "streams lakes alone, and"),
    ):
        with pytest.raises(StreamingQueryException, match=reason) as raised:
            asking.run(lake, type="TopicRecord")
        assert "Traceback" not in str(raised.value)
