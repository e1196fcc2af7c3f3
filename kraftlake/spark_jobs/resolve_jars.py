"""A process of its own that asks Spark's resolver for jars and writes their paths, as JSON, to `$KRAFTLAKE_ANSWER`.

Run by `kraftlake.spark_jobs.jars` with Maven coordinates as arguments. No Spark context is started: spark-submit
resolves its packages before it runs anything, and the properties of the bare gateway then name the jars.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit


def main(extra_packages: list[str]) -> None:
    """Writes the jars of Delta Lake and of `extra_packages` for the installed Spark."""
    from delta import configure_spark_with_delta_pip
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    # The builder only collects options; which artifact goes with this Spark is Delta's own knowledge.
    builder = configure_spark_with_delta_pip(SparkSession.builder, extra_packages=extra_packages)
    conf = SparkConf(loadDefaults=False)
    conf.set("spark.jars.packages", builder._options["spark.jars.packages"])
    gateway = launch_gateway(conf)
    try:
        jars = gateway.jvm.System.getProperty("spark.jars") or ""
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    paths = [unquote(urlsplit(jar).path) for jar in jars.split(",") if jar]
    if paths:
        Path(os.environ["KRAFTLAKE_ANSWER"]).write_text(json.dumps(paths), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
