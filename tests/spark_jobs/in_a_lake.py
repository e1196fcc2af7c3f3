"""For a driver (tests/spark_driver.py): what Spark's executors do of a lake, by `everything` or `made`."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from kraftlake.spark_jobs import (
    KraftDataSource,
    StreamOptions,
    build_snapshot,
    counts_by_minute,
    image_frame,
    local_changes_frame,
    read_records,
    records,
    run_job,
    run_lakes,
    state_frame,
    table_frame,
)
from kraftlake.spark_jobs.executor_environment import store_access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATE_AT = 3_000


def everything(spark: SparkSession, lake: str) -> dict[str, Any]:
    """What a session reads, folds and writes, with a backlog of `records/` in three commits, and then `tables`."""
    changes = read_records(spark, lake, "PartitionChangeRecord", columns=["offset", "leader"])
    read = changes.selectExpr("count(*)", "sum(offset)", "sum(leader)").collect()[0]
    source = spark.read.format("kraft").option("endOffset", 2_000).load(lake)
    typed = source.where("type = 'TOPIC_RECORD'").selectExpr("count(*)", "sum(offset)").collect()[0]
    image = image_frame(spark, lake, 4_000).selectExpr("count(*)", "sum(leader_epoch)").collect()[0]
    local = local_changes_frame(spark, lake, 3_000, 4_000).groupBy("broker").count().orderBy("broker").collect()
    built = build_snapshot(spark, lake, 5_083)
    committed: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("RECORDS_A_PART", 700), ("_PARTS_A_COMMIT", 3)):
            patch.setattr(records, name, value)
        done = run_job("records", lake, spark=spark, on_progress=lambda last, _: committed.append(last))
    for job in ("history", "metrics"):
        run_job(job, lake, spark=spark)
    return {
        "read": list(read),
        "typed": list(typed),
        "image": list(image),
        "local": [list(row) for row in local],
        "snapshot": built.to_json(),
        "records": {"committed": committed, "rows": done.rows},
        **tables(spark, lake, "events"),
    }


def made(spark: SparkSession, lake: str) -> dict[str, Any]:
    """How many steps executors and how many micro-batches the driver needed for all tables, and then `tables`."""
    done = run_job("all", lake, spark=spark, options=StreamOptions(max_records=3_000), snapshot_every_bytes=60_000)
    return {"made": [done.steps, done.driver_batches], **tables(spark, lake, "records")}


def tables(spark: SparkSession, lake: str, new: str) -> dict[str, Any]:
    """What a session reads of a lake that has histories and metrics; the job `new` is run as one over many lakes."""
    minutes = counts_by_minute(spark, lake).selectExpr("unix_timestamp(minute) AS at", "*").drop("minute").collect()
    state = state_frame(spark, lake, STATE_AT).where("leader = 2").select("topic", "partition", "isr")
    ended = table_frame(spark, lake, "topic_history", columns=["topic", "valid_to_offset"])
    return {
        "minutes": [row.asDict() for row in minutes],
        "state": sorted([row.topic, row.partition, list(row.isr)] for row in state.collect()),
        "ended": sorted(row.topic for row in ended.where("valid_to_offset IS NOT NULL").collect()),
        "lakes": lakes(spark, lake, new),
        "streamed": streamed(spark, lake),
    }


def lakes(spark: SparkSession, lake: str, job: str) -> list[Any]:
    """What a job over the lake and one that is not there says, and how many rows of its table a list of lakes has."""
    result = run_lakes(job, [lake, f"{lake}-nowhere"], spark=spark)
    rows = (result.lakes[0].summary or {}).get("rows")
    return [result.failed, rows, table_frame(spark, [lake], job, columns=["lake"]).count()]


def streamed(spark: SparkSession, lake: str) -> list[int]:
    """The offsets that a stream brings in a session of another making, which lends executors nothing."""
    lent = spark.sparkContext.environment
    spark.sparkContext.environment = {name: value for name, value in lent.items() if name not in store_access()}
    spark.dataSource.register(KraftDataSource)
    stream = spark.readStream.format("kraft").option("maxRecordsPerTrigger", 4_000).schema("offset LONG").load(lake)
    query = stream.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
    query.awaitTermination()
    spark.sparkContext.environment = lent
    return sorted(row.offset for row in spark.table("streamed").collect())


def shown(spark: SparkSession, lake: str) -> list[Any]:
    """The number of records that a job and a read have, and what the session's page shows after that and a fold."""
    run_job("all", lake, spark=spark)
    rows = read_records(spark, lake, columns=["offset"]).count()
    assert image_frame(spark, lake).count() > 0
    return [rows, *pages_of(spark.sparkContext.uiWebUrl or "")]


def pages_of(page: str) -> list[str]:
    """What the page of Spark's one application shows as JSON."""
    applications = f"{page}/api/v1/applications"
    (application,) = json.loads(text_at(applications))
    parts = ("environment", "executors", "jobs", "stages?details=true", "sql?details=true&planDescription=true")
    return [text_at(f"{applications}/{application['id']}/{part}") for part in parts]


def text_at(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read(), "utf-8")


def main(spark: SparkSession, lake: str, what: str) -> dict[str, Any]:
    return {"everything": everything, "made": made}[what](spark, lake)
