"""Kafka 4.4's own jars for tests, through Spark's resolver: from its cache in the home folder, downloaded if need be.

`kafka_jars` are the image and log classes, `kafka_node_jars` a whole node; Maven is not needed. Run as a program it
resolves its arguments and prints the paths of their jars as JSON: in a process of its own, since that needs a JVM.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kraftlake.spark_jobs.jars import user_cache
from kraftlake.spark_jobs.java import java_home

PACKAGES = ("org.apache.kafka:kafka-metadata:4.4.0", "org.apache.kafka:kafka-raft:4.4.0")
NODE_PACKAGES = ("org.apache.kafka:kafka_2.13:4.4.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5")
# Asked for by the node's pom, and never published at that version; only the release tarball's tools use it.
_UNPUBLISHED = "org.apache.kafka:kafka-tools-api"
_MARK = "resolved jars: "


@cache
def kafka_jars() -> dict[str, Path]:
    """The jars of `PACKAGES` and all that they need, by artifact: `kafka-metadata`, `kafka-clients`, …

    The values are a class path. A machine that has them asks nobody; else Spark's resolver does, and a failure of it is
    an error of the test, not a reason to skip.
    """
    jars = _jars("kafka-jars-4.4.0.json", PACKAGES)
    assert {"kafka-metadata", "kafka-clients", "kafka-raft", "kafka-server-common"} <= set(jars)
    return jars


@cache
def kafka_node_jars() -> dict[str, Path]:
    """The jars of a whole Kafka 4.4.0 node, by artifact; Spark's own copy of Scala's library completes them."""
    import pyspark

    jars = _jars("kafka-node-jars-4.4.0.json", NODE_PACKAGES)
    scala = list((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.13.*.jar"))
    assert len(scala) == 1, "Spark's resolver leaves out scala-library, since Spark ships it"
    assert {"kafka_2.13", "kafka-server", "kafka-raft", "log4j-core"} <= set(jars)
    return jars | {"scala-library": scala[0]}


def _jars(list_name: str, packages: tuple[str, ...]) -> dict[str, Path]:
    known = user_cache() / list_name
    try:
        paths = [Path(path) for path in json.loads(known.read_text("utf-8"))]
    except (OSError, ValueError):
        paths = []
    if not paths or not all(path.is_file() for path in paths):
        paths = _ask_resolver(packages)
        with tempfile.NamedTemporaryFile("w", dir=known.parent, delete=False) as file:
            json.dump([str(path) for path in paths], file)
        Path(file.name).replace(known)
    jars = {_artifact(path): path for path in paths}
    assert len(jars) == len(paths), "two jars of one artifact"
    return jars


def _artifact(path: Path) -> str:
    """`kafka-clients` for Ivy's `org.apache.kafka_kafka-clients-4.4.0.jar`."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", path.name.partition("_")[2])


def _ask_resolver(packages: tuple[str, ...]) -> list[Path]:
    environment = dict(os.environ, JAVA_HOME=str(java_home()), SPARK_LOCAL_IP="127.0.0.1")
    for variable in ("PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS"):
        environment.pop(variable, None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.interop.jars", *packages],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            return [Path(path) for path in json.loads(line.removeprefix(_MARK))]
    raise AssertionError(
        f"Spark's resolver did not find {', '.join(packages)}; it needs Maven Central or a mirror of it once:\n"
        f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    )


def _resolve(packages: list[str]) -> None:
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    conf.set("spark.jars.packages", ",".join(packages))
    conf.set("spark.jars.excludes", _UNPUBLISHED)
    gateway = launch_gateway(conf)
    jars = gateway.jvm.System.getProperty("spark.jars") or ""
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    print(_MARK + json.dumps([unquote(urlsplit(jar).path) for jar in jars.split(",") if jar]))


if __name__ == "__main__":
    _resolve(sys.argv[1:])
