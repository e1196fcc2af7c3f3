"""A program that asks Spark's resolver for jars and writes their paths, as JSON, to `answer.json`.

`kraftlake.spark_jobs.jars` runs it with a folder for all of its files, and a JSON object: Maven coordinates under
`packages`, and `group:name` of excluded artifacts under `excluded`. It leads its own process group, which it kills when
its standard input closes: the asking process has ended then. It starts no Spark context: spark-submit resolves packages
before it runs anything, and the properties of the bare gateway then name the jars.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit


def main(folder: Path, packages: list[str], excluded: list[str]) -> None:
    """Write the answer, in one step, if every jar was found."""
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    conf.set("spark.jars.packages", ",".join(packages))
    conf.set("spark.jars.ivy", str(folder / "ivy"))
    if excluded:
        conf.set("spark.jars.excludes", ",".join(excluded))
    # Below user.home are the local Maven repository, which may have a POM without its jar, and Ivy's usual caches.
    options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    os.environ["SPARK_SUBMIT_OPTS"] = f'{options} "-Duser.home={folder}"'
    gateway = launch_gateway(conf)
    try:
        jars = gateway.jvm.System.getProperty("spark.jars") or ""
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    # A user's spark-defaults.conf may name jars of other folders, too.
    paths = [path for jar in jars.split(",") if (path := Path(unquote(urlsplit(jar).path))).is_relative_to(folder)]
    if paths:
        (folder / "answer").write_text(json.dumps([str(path) for path in paths]), "utf-8")
        (folder / "answer").rename(folder / "answer.json")


def _end_with_the_asking_process() -> None:
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_asking_process, daemon=True).start()
    main(Path(sys.argv[1]), **json.loads(sys.argv[2]))
