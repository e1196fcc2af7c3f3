"""What Spark's executors do of a lake: `python -m tests.spark_jobs.in_a_lake LAKE` prints what they found."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from kraftlake.spark_jobs import build_snapshot, image_frame, local_changes_frame, read_records, records, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def found(spark: SparkSession, lake: str) -> dict[str, Any]:
    """What a session reads, folds and writes, with a backlog of `records/` in three commits."""
    changes = read_records(spark, lake, "PartitionChangeRecord", columns=["offset", "leader"])
    read = changes.selectExpr("count(*)", "sum(offset)", "sum(leader)").collect()[0]
    image = image_frame(spark, lake, 4_000).selectExpr("count(*)", "sum(leader_epoch)").collect()[0]
    local = local_changes_frame(spark, lake, 3_000, 4_000).groupBy("broker").count().orderBy("broker").collect()
    built = build_snapshot(spark, lake, 5_083)
    committed: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("BACKLOG", 1), ("RECORDS_A_PART", 700), ("_PARTS_A_COMMIT", 3)):
            patch.setattr(records, name, value)
        done = records.run_records(lake, spark=spark, on_progress=lambda last, _: committed.append(last))
    return {
        "read": list(read),
        "image": list(image),
        "local": [list(row) for row in local],
        "snapshot": built.to_json(),
        "records": {"committed": committed, "rows": done.rows},
    }


if __name__ == "__main__":
    session = spark_session("in a lake")
    told = found(session, sys.argv[1])
    session.stop()
    sys.stdout.write(json.dumps(told) + "\n")
