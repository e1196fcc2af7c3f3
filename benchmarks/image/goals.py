"""The workloads and their goals: our time as a ratio to Java's, at 125 thousand and at a million partitions."""

from __future__ import annotations

import attrs


@attrs.frozen
class Workload:
    """`key` names it to both sides; `goal` has the ratio for small and for large clusters, None for one without.

    `loops` is the number of calls in one sample: 1 for what takes milliseconds, thousands for what takes nanoseconds.
    `java` is the key of Java's side where that has one form of what we have two of.
    """

    key: str
    what: str
    goal: tuple[float, float] | None
    loops: int = 1
    java: str = attrs.field(default=attrs.Factory(lambda self: self.key, takes_self=True))


WORKLOADS = (
    Workload("load_wire", "snapshot bytes (CRC, decode) → image", (0.15, 0.08)),
    Workload("load_asked", "the same, and one topic looked up by name and by id", (0.15, 0.08), java="load_wire"),
    Workload("load_indexed", "the same, both indexes made", None, java="load_wire"),
    Workload("load_ready", "ready records in memory → image", (0.3, 0.3), java="load_records"),
    Workload("outage_wire", "a third of all partitions change, from wire, + apply", (0.05, 0.05)),
    Workload("broker_apply", "one broker's outage, apply", (0.10, 0.10)),
    Workload("bulk_local_changes", "local_changes of the bulk change, as mappings", (0.15, 0.15)),
    Workload("load_local_changes", "local_changes of a whole load, directory ids", (0.15, 0.15)),
    Workload("changes_wire", "change records from wire + apply", (0.10, 0.10)),
    Workload("one_change", "one change: new delta + replay + apply, chained", (1.5, 1.5), 1000),
    Workload("one_change_local_changes", "the same + local_changes", (2.0, 2.0), 1000),
    Workload("lookup", "lookup by name and partition", (4.0, 4.0), 5000),
    Workload("iterate_topic", "iterate a topic", (5.0, 5.0), 1000),
    Workload("diff", "diff of two images that share all but one topic", (0.01, 0.01), 50),
    Workload("equality", "equality of two such images", (0.01, 0.01), 50),
)
MEMORY_GOAL = 0.25
"""Bytes a partition, indexes included, as a ratio to Java's."""

COLD_LOG_GOAL, COLD_COLUMNS_GOAL = 0.2, 0.1
"""A fresh process, from a log and from the lake's columns."""

LARGE = 500_000
"""The number of partitions from which on the second goal counts."""
