"""A driver for the cluster: writes numbers as a Delta table, decodes them in Arrow on executors, prints what it saw.

`python -m tests.spark_jobs.cluster_sum MASTER TABLE`
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pyarrow as pa

from kraftlake.spark_jobs import spark_session

ROWS = 1000


def _with_process(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from kraftlake.records.metadata_records import METADATA_RECORDS  # the executors' Python has what the driver's has

    assert METADATA_RECORDS
    for batch in batches:
        yield pa.RecordBatch.from_arrays(
            [batch.column("id"), pa.array([os.getppid()] * batch.num_rows, pa.int64())], ["id", "executor"]
        )


def main(master: str, table: str) -> None:
    spark = spark_session("cluster sum", master=master)
    spark.range(0, ROWS, numPartitions=4).write.format("delta").mode("overwrite").save(table)
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 3:  # the driver and two executors
        spark.range(1).count()
    read = spark.read.format("delta").load(table).repartition(4).mapInArrow(_with_process, "id long, executor long")
    rows = read.collect()
    answer = {
        "sum": sum(row.id for row in rows),
        "executors": len({row.executor for row in rows}),
        "driver_is_one": os.getpid() in {row.executor for row in rows},
    }
    spark.stop()
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
