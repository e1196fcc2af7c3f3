"""Archives the classes of Spark and Delta Lake as a JVM has them loaded: `make test` runs this once for a `.venv`.

A JVM that begins with the archive starts in half the time; the tests start dozens. The archive is of one Java and of
the jars of `.venv`: a JVM with others leaves it aside.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ARCHIVE = Path(__file__).resolve().parents[1] / "build" / "spark-classes.jsa"
SAMPLE = Path(__file__).resolve().parents[1] / "samples" / "kafka-4.4"


def main() -> int:
    """Archive what jobs over a lake load, and queries of their tables; a Java that makes no archives is no fault."""
    print("archiving Spark's classes, for JVMs that start sooner (half a minute, once)", file=sys.stderr, flush=True)
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        made = Path(folder) / ARCHIVE.name
        os.environ["SPARK_SUBMIT_OPTS"] = f"-Xlog:disable -XX:ArchiveClassesAtExit={made}"
        run_jobs(Path(folder) / "lake")
        if made.exists():
            made.rename(ARCHIVE)
    return 0


def run_jobs(lake: Path) -> None:
    """Run jobs in a session, and wait until its JVM has ended."""
    from pyspark import SparkContext

    from kraftlake.replay.imports.import_log import import_source
    from kraftlake.spark_jobs import read_records, run_job, spark_session

    import_source(SAMPLE, lake)
    spark = spark_session("classes to archive")
    for job in ("records", "events"):
        run_job(job, str(lake), spark=spark)
    read_records(spark, str(lake), "TopicRecord").groupBy("name").count().collect()
    spark.read.format("delta").load(str(lake / "events")).groupBy("kind").count().collect()
    gateway = SparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    sys.exit(main())
