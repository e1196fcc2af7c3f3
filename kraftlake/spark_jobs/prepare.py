"""Prepares a machine or an image for sessions: `python -m kraftlake.spark_jobs.prepare`.

Fetches Delta Lake's jars into the user's cache, and archives the classes of Spark there, by running jobs of a
small log in a session of its own. Sessions start without it as well, later and slower.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from kraftlake.runtime.errors import KraftlakeError
from kraftlake.runtime.user_cache import user_cache
from kraftlake.spark_jobs.class_archive import class_archive, making_options, remove_earlier
from kraftlake.spark_jobs.jars import jars_are_cached, spark_jars

_JOBS = ("all", "records")


def main() -> int:
    """Prepare what is missing; returns the exit code."""
    try:
        if not jars_are_cached():
            _say("fetching Delta Lake's jars for Spark (about 15 MB, once)")
        spark_jars()
        archive = class_archive()
        if not archive.exists():
            _say("archiving Spark's classes, for sessions that start sooner (half a minute, once)")
            make_archive(archive)
    except KraftlakeError as fault:
        _say(str(fault))
        return fault.exit_code
    except OSError as fault:
        _say(f"the cache {user_cache()} can't be written: {fault.strerror or fault}")
        return 1
    return 0


def make_archive(archive: Path) -> None:
    """Run jobs and queries in a session whose JVM archives its classes when it ends, and wait for that.

    A Java that makes no archive is no error: sessions start without one.
    """
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".archiving-", ignore_cleanup_errors=True) as folder:
        made = Path(folder) / archive.name
        os.environ["SPARK_SUBMIT_OPTS"] = making_options(made)
        _run_jobs(Path(folder) / "lake")
        if made.exists():
            made.replace(archive)
            remove_earlier(archive)


def _run_jobs(lake: Path) -> None:
    from pyspark import SparkContext

    from kraftlake.generate.lake import generate_lake
    from kraftlake.generate.plan import Plan
    from kraftlake.spark_jobs.session import spark_session
    from kraftlake.spark_jobs.table_stream import run_job
    from kraftlake.spark_jobs.typed_read import read_records

    generate_lake(lake, Plan(topics=10, records=2_000))
    spark = spark_session("classes to archive")
    for job in _JOBS:
        run_job(job, str(lake), spark=spark)
    read_records(spark, str(lake), "TopicRecord").groupBy("name").count().collect()
    spark.read.format("delta").load(str(lake / "events")).groupBy("kind").count().collect()
    gateway = SparkContext._gateway
    spark.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
