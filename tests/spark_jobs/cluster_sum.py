"""For the cluster's driver: writes numbers as a Delta table, decodes them in Arrow on executors, says what it saw."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

ROWS = 1000


def main(spark: SparkSession, table: str) -> dict[str, object]:
    def with_process(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kraftlake.records.metadata_records import METADATA_RECORDS  # executors' Python has what the driver's has

        assert METADATA_RECORDS
        for batch in batches:
            yield pa.RecordBatch.from_arrays(
                [batch.column("id"), pa.array([os.getppid()] * batch.num_rows, pa.int64())], ["id", "executor"]
            )

    spark.range(0, ROWS, numPartitions=4).write.format("delta").mode("overwrite").save(table)
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # the driver and two executors
        spark.range(1).count()
    read = spark.read.format("delta").load(table).repartition(4).mapInArrow(with_process, "id long, executor long")
    rows = read.collect()
    return {
        "sum": sum(row.id for row in rows),
        "executors": len({row.executor for row in rows}),
        "driver_is_one": os.getpid() in {row.executor for row in rows},
    }
