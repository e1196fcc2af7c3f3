"""Kafka's own jars for tests, found and kept as Delta Lake's are: by Spark's resolver, downloaded once.

`kafka_jars` are the image and log classes of 4.4.0, `kafka_node_jars` a whole node of a release, `kafka_tools_jars` its
command-line tools; Maven is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kraftlake.spark_jobs.jars import kept_jars, resolve_jars

PACKAGES = ("org.apache.kafka:kafka-metadata:4.4.0", "org.apache.kafka:kafka-raft:4.4.0")
NODE_PACKAGES = {
    "4.4.0": ("org.apache.kafka:kafka_2.13:4.4.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"),
    "3.9.1": ("org.apache.kafka:kafka_2.13:3.9.1", "org.slf4j:slf4j-reload4j:1.7.36"),
}
# Of 4.4.0 the interfaces of kafka-tools-api are not published.
TOOLS_PACKAGES = ("org.apache.kafka:kafka-tools:4.4.0", "org.apache.kafka:kafka-tools-api:4.1.0")
_LEFT_OUT = (
    # Asked for by the node's pom, and not published for 4.4.0; only the release tarball's tools use it.
    "org.apache.kafka:kafka-tools-api",
    # Of ZooKeeper's server, which no node in KRaft mode starts; another jar has the same name.
    "io.dropwizard.metrics:metrics-core",
)


@cache
def kafka_jars() -> dict[str, Path]:
    """The jars of `PACKAGES` and all that they need, by artifact: `kafka-metadata`, `kafka-clients`, …

    The values are a class path. A machine that has them asks nobody; else Spark's resolver does, and a failure of it is
    an error of the test, not a reason to skip.
    """
    jars = _jars("kafka-4.4.0", PACKAGES)
    assert {"kafka-metadata", "kafka-clients", "kafka-raft", "kafka-server-common"} <= set(jars)
    return jars


@cache
def kafka_node_jars(release: str = "4.4.0") -> dict[str, Path]:
    """The jars of a whole Kafka node, by artifact; Spark's own copy of Scala's library completes them."""
    import pyspark

    jars = _jars(f"kafka-node-{release}", NODE_PACKAGES[release])
    scala = list((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.13.*.jar"))
    assert len(scala) == 1, "Spark's resolver leaves out scala-library, since Spark ships it"
    assert {"kafka_2.13", "kafka-server", "kafka-raft"} <= set(jars)
    return jars | {"scala-library": scala[0]}


@cache
def kafka_tools_jars() -> dict[str, Path]:
    """The jars of the tools of 4.4.0 that a release has in `bin`, by artifact."""

    def resolve(scratch: Path) -> Iterator[Path]:
        for package in TOOLS_PACKAGES:
            name = package.split(":")[1]
            folder = scratch / name
            folder.mkdir()
            left_out = [one for one in _LEFT_OUT if not one.endswith(f":{name}")]
            yield from (path for path in resolve_jars([package], folder, left_out) if _artifact(path) == name)

    jars = {_artifact(path): path for path in kept_jars("kafka-tools-4.4.0", resolve)}
    assert {"kafka-tools", "kafka-tools-api"} == set(jars)
    return kafka_node_jars() | jars


def _jars(name: str, packages: tuple[str, ...]) -> dict[str, Path]:
    paths = kept_jars(name, lambda scratch: resolve_jars(packages, scratch, excluded=_LEFT_OUT))
    jars = {_artifact(path): path for path in paths}
    assert len(jars) == len(paths), "two jars of one artifact"
    return jars


def _artifact(path: Path) -> str:
    """`kafka-clients` for Ivy's `org.apache.kafka_kafka-clients-4.4.0.jar`."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", path.name.partition("_")[2])
