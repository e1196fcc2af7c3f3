"""Kafka's own jars for tests, found and kept as Delta Lake's are: by Spark's resolver, downloaded once.

They are those of a release that a node and its command-line tools need; Maven is not needed.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import chain
from pathlib import Path

from kraftlake.spark_jobs.jars import kept_jars, resolve_jars

_TOOLS_API = "org.apache.kafka:kafka-tools-api"  # asked for by the nodes' poms, and not published for 4.4.0
_METRICS = "io.dropwizard.metrics:metrics-core"  # of ZooKeeper's server, which no node in KRaft mode starts
RELEASES = {
    "4.4.0": {
        ("org.apache.kafka:kafka_2.13:4.4.0", "org.apache.kafka:kafka-tools:4.4.0",
         "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"): (_TOOLS_API, _METRICS, "org.apache.kafka:connect-*"),
        (f"{_TOOLS_API}:4.1.0",): ("org.apache.kafka:kafka-clients",),
    },
    "3.9.1": {("org.apache.kafka:kafka_2.13:3.9.1", "org.slf4j:slf4j-reload4j:1.7.36"): (_TOOLS_API, _METRICS)},
}  # fmt: skip
"""By release, the packages that are resolved together, and what is left out of all that they need."""


@cache
def kafka_jars(release: str = "4.4.0") -> dict[str, Path]:
    """The jars of a Kafka node by artifact: `kafka-metadata`, `kafka-clients`, …; of 4.4.0 those of its tools, too.

    The values are a class path; Spark's own copy of Scala's library completes them. A machine that has them asks
    nobody; else Spark's resolver does, and a failure of it is an error of the test, not a reason to skip.
    """
    import pyspark

    paths = kept_jars(f"kafka-release-{release}", partial(_resolve, release))
    jars = {_artifact(path): path for path in paths}
    assert len(jars) == len(paths), "two jars of one artifact"
    assert {"kafka_2.13", "kafka-server", "kafka-raft"} <= set(jars)
    scala = list((Path(pyspark.__file__).parent / "jars").glob("scala-library-2.13.*.jar"))
    assert len(scala) == 1, "Spark's resolver leaves out scala-library, since Spark ships it"
    return jars | {"scala-library": scala[0]}


def _resolve(release: str, scratch: Path) -> list[Path]:
    """The jars of a release; its groups are resolved side by side, since a resolver waits for the network."""

    def resolve(packages: tuple[str, ...]) -> list[Path]:
        folder = scratch / packages[0].replace(":", "_")
        folder.mkdir()
        return resolve_jars(packages, folder, RELEASES[release][packages])

    with ThreadPoolExecutor() as pool:
        return [*chain.from_iterable(pool.map(resolve, RELEASES[release]))]


def _artifact(path: Path) -> str:
    """`kafka-clients` for Ivy's `org.apache.kafka_kafka-clients-4.4.0.jar`."""
    return re.sub(r"-\d[\w.+-]*\.jar$", "", path.name.partition("_")[2])
