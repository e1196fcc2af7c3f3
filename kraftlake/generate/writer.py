"""Writes a generated history: records, and the time between them. Imports numpy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kraftlake.generate.cluster import GeneratedCluster
from kraftlake.generate.rows import BatchRows, Records
from kraftlake.generate.template import RecordKind
from kraftlake.records.metadata_records import NoOpRecord
from kraftlake.records.schema import Message
from kraftlake.records.serde import encode_value

NO_OP_MS = 500


class ClusterLogWriter:
    """Writes batches at the cluster's time, which advances by some milliseconds after each."""

    def __init__(self, cluster: GeneratedCluster, rows: BatchRows) -> None:
        self.cluster = cluster
        self.rows = rows
        self.now_ms = cluster.plan.start_ms
        self._no_op = (RecordKind.of(NoOpRecord, 0), encode_value(NoOpRecord(), 0))

    @property
    def offset(self) -> int:
        """The offset of the next record."""
        return self.rows.offset

    @property
    def is_long_enough(self) -> bool:
        """Whether the history has the planned length."""
        return self.offset >= self.cluster.plan.records

    def batch(self, *parts: Records) -> Iterator[pa.Table]:
        """Write the records of one operation; yields a table if enough rows are collected."""
        self.rows.add(parts, self.now_ms)
        self.now_ms += int(self.cluster.random.integers(1, 20))
        if self.rows.is_full:
            yield from self.rows.take()

    def messages(self, *messages: tuple[Message, int]) -> Iterator[pa.Table]:
        """Write messages, each with its version, as one batch."""
        yield from self.batch(messages_as_records(messages))

    def topics(self, records: Records, per_topic: int) -> Iterator[pa.Table]:
        """Write topics, one batch of `per_topic` records for each."""
        count = len(records) // per_topic
        times = self.now_ms + np.cumsum(self.cluster.random.integers(1, 20, count))
        self.rows.add_many([records], np.full(count, per_topic), times)
        self.now_ms = int(times[-1]) + 1
        if self.rows.is_full:
            yield from self.rows.take()

    def quiet(self, duration_ms: int) -> Iterator[pa.Table]:
        """Advance the time with only no-op records: one batch every half second."""
        count = duration_ms // NO_OP_MS
        kind, value = self._no_op
        if count:
            values = np.frombuffer(value * count, np.uint8).reshape(count, -1)
            times = self.now_ms + NO_OP_MS * np.arange(1, count + 1)
            self.rows.add_many([Records.of_matrix(kind, values)], np.ones(count, np.int64), times)
        self.now_ms += duration_ms
        if self.rows.is_full:
            yield from self.rows.take()


def messages_as_records(messages: Sequence[tuple[Message, int]]) -> Records:
    """Messages, each with its version, as records."""
    values: list[tuple[RecordKind, bytes]] = [
        (RecordKind.of(type(message), version), encode_value(message, version)) for message, version in messages
    ]
    return Records.of_values(values)


def chunks(rows: Any, size: int) -> Iterator[Any]:
    """The rows, `size` at a time."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
