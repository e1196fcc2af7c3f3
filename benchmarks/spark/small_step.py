"""A small step over a large cluster: `python -m benchmarks.spark.small_step LAKE [RECORDS]`; prints JSON.

LAKE is a generated lake (`python -m benchmarks.spark --cluster 1M --lakes DIR` makes one of a million partitions). The
job `all` brings its tables up to the end. Then 1,000 changes of partitions (or RECORDS) are appended and the job runs
again, twice: executors make them, as a job that starts finds them there. Clock and CPU seconds of all processes of
these runs, in the session of the first, and the clock of `kraftlake tables` for as many again. LAKE is changed by it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from benchmarks.spark.cpu import tree_cpu
from benchmarks.spark.latency import Appender
from kraftlake.spark_jobs import run_job, spark_session


def main() -> None:
    """Measure and print."""
    lake, records = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    spark = spark_session("small step benchmark")
    run_job("all", lake, spark=spark)
    appender, figures = Appender(lake), dict[str, object]()
    for what in ("first", "again"):
        appender.append(records)
        cpu, begun = tree_cpu(), time.perf_counter()
        done = run_job("all", lake, spark=spark)
        figures[what] = {"wall": time.perf_counter() - begun, "cpu": tree_cpu() - cpu, "steps": done.steps}
    appender.append(records)
    spark.stop()
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "kraftlake", "tables", lake, "--json"], check=True, capture_output=True)
    figures["in one process"] = {"wall": time.perf_counter() - begun}
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
