"""What spark-submit runs of a packaged kraftlake: where it comes from, here and on the executors, and two jobs."""

from __future__ import annotations

import json
import sys

import kraftlake
from kraftlake.spark_jobs import spark_session
from kraftlake.spark_jobs.submit import main


def origins(batches):  # type: ignore[no-untyped-def]
    import pyarrow as pa

    import kraftlake.kernels.aot.code_cache as code

    for batch in batches:
        depends_on = code._code_depends_on()
        origin = f"{code.__file__} {b'split_plain' in depends_on}"
        yield pa.RecordBatch.from_arrays([pa.array([origin] * batch.num_rows)], ["origin"])


if __name__ == "__main__":
    spark = spark_session("packaged")
    seen = spark.range(0, 8, numPartitions=2).mapInArrow(origins, "origin string").distinct().collect()
    answer = {
        "driver": kraftlake.__file__,
        "executors": [row.origin for row in seen],
        "master": spark.sparkContext.master,
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.exit(main(["snapshot", sys.argv[1]]) or main(["records", sys.argv[1]]))
