"""The plan of a generated history: the cluster, the length of its history, and its episodes."""

from __future__ import annotations

import attrs

from kraftlake.runtime.arguments import texts, whole
from kraftlake.runtime.errors import UsageError

PATTERNS = (
    "rolling-restart",
    "zone-outage",
    "isr-flaps",
    "reassignment-storm",
    "topic-churn",
    "config-changes",
)
"""The episodes, in their order; the last one is followed by the first."""

MAX_RECORDS_PER_BATCH = 10_000
"""Largest number of records of one operation (Kafka's QuorumController.MAX_RECORDS_PER_USER_OP)."""

START = 1_767_225_600_000
"""The default start of a history, in epoch milliseconds: 2026-01-01T00:00:00Z."""


_COUNTS = ("brokers", "racks", "topics", "partitions", "replication_factor")


@attrs.frozen(kw_only=True)
class Plan:
    """A cluster and its history; equal plans give equal logs, byte for byte.

    `records`: the log ends after the batch with which it reaches this number, but not before the cluster is set up.
    `quiet_ms`: the time of the cluster between two episodes, with a no-op record every 500 ms.
    """

    brokers: int = 6
    racks: int = 3
    topics: int = 50
    partitions: int = 12
    """The number of partitions of each topic."""
    replication_factor: int = 3
    records: int = 100_000
    patterns: tuple[str, ...] = PATTERNS
    quiet_ms: int = 60_000
    seed: int = 0
    start_ms: int = START

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics."""
        return self.topics * self.partitions

    @property
    def least_memory(self) -> int:
        """The bytes of the cluster's state alone (see `Cluster`)."""
        of_partition = 12 + 5 * self.replication_factor
        return self.partition_count * of_partition + self.topics * 16 + (self.brokers + 1) * 29

    @property
    def least_disk(self) -> int:
        """The bytes of the log if it has only no-op records, which compress best."""
        return self.records // 20

    def starting(self, start_ms: int) -> Plan:
        """The same history with another start."""
        return attrs.evolve(self, start_ms=start_ms)

    def check(self) -> None:
        """Raise UsageError that names an invalid option."""
        for name in (*_COUNTS, "start_ms", "records", "seed", "quiet_ms"):
            whole(getattr(self, name), f"a whole number for {name}")
        texts(self.patterns, "the name of a pattern")
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}.")
        if self.start_ms < 0:
            raise UsageError("--start is before 1970, where Kafka's times begin.")
        for name in ("records", "seed", "quiet_ms"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} can't be negative: {getattr(self, name)}.")
        if self.replication_factor > self.brokers:
            raise UsageError(
                f"--replication-factor {self.replication_factor} needs as many brokers; --brokers is {self.brokers}."
            )
        if self.racks > self.brokers:
            raise UsageError(f"--racks {self.racks} needs a broker in each, but --brokers is {self.brokers}.")
        if self.partitions >= MAX_RECORDS_PER_BATCH:
            raise UsageError(
                f"--partitions {self.partitions} is too many: a topic and its partitions are one batch, which holds "
                f"at most {MAX_RECORDS_PER_BATCH:,} records. Take more topics instead."
            )
        unknown = [name for name in self.patterns if name not in PATTERNS]
        if unknown:
            raise UsageError(f"There is no pattern {unknown[0]!r}; there are {', '.join(PATTERNS)}.")
