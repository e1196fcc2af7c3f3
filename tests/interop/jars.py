"""Kafka 4.4's own jars for tests, found and kept as Delta Lake's are: by Spark's resolver, downloaded once.

`kafka_jars` are the image and log classes, `kafka_node_jars` a whole node; Maven is not needed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from kraftlake.spark_jobs.jars import kept_jars, resolve_jars

PACKAGES = ("org.apache.kafka:kafka-metadata:4.4.0", "org.apache.kafka:kafka-raft:4.4.0")
NODE_PACKAGES = ("org.apache.kafka:kafka_2.13:4.4.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5")
# Asked for by the node's pom, and never published at that version; only the release tarball's tools use it.
_UNPUBLISHED = "org.apache.kafka:kafka-tools-api"


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
def kafka_node_jars() -> dict[str, Path]:
    """The jars of a whole Kafka 4.4.0 node, by artifact; Spark's own copy of Scala's library completes them."""
    import pyspark

    jars = _jars("kafka-node-4.4.0", NODE_PACKAGES)
    scala = list((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.13.*.jar"))
    assert len(scala) == 1, "Spark's resolver leaves out scala-library, since Spark ships it"
    assert {"kafka_2.13", "kafka-server", "kafka-raft", "log4j-core"} <= set(jars)
    return jars | {"scala-library": scala[0]}


def _jars(name: str, packages: tuple[str, ...]) -> dict[str, Path]:
    paths = kept_jars(name, lambda scratch: resolve_jars(packages, scratch, excluded=[_UNPUBLISHED]))
    jars = {_artifact(path): path for path in paths}
    assert len(jars) == len(paths), "two jars of one artifact"
    return jars


def _artifact(path: Path) -> str:
    """`kafka-clients` for Ivy's `org.apache.kafka_kafka-clients-4.4.0.jar`."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", path.name.partition("_")[2])
