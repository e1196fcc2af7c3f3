"""The logs of a simulated cluster as they were written, and what leaders have committed, for whoever checks them."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import attrs

from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches
from simulator.compacted_logs import LOG_SUFFIX, CompactedPartition, Records


@attrs.define
class Batches:
    """Batches in the order of their offsets: their bounds (the end is exclusive) and checksums."""

    bases: list[int] = attrs.field(factory=list)
    ends: list[int] = attrs.field(factory=list)
    sums: list[int] = attrs.field(factory=list)

    @property
    def end(self) -> int:
        """The offset after the last."""
        return self.ends[-1] if self.ends else 0

    def add(self, base: int, end: int, checksum: int) -> None:
        """Add a batch."""
        self.bases.append(base)
        self.ends.append(end)
        self.sums.append(checksum)

    def cut(self, offset: int) -> None:
        """Remove the batches with offsets from one on."""
        count = bisect_left(self.ends, offset + 1)
        del self.bases[count:], self.ends[count:], self.sums[count:]


@attrs.define
class Mirror:
    """A log as it was written, and how far it was compared with what is committed."""

    batches: Batches = attrs.field(factory=Batches)
    records: Records = attrs.field(factory=dict)
    """Those of a compacted log."""
    compared: int = 0


@attrs.define
class Committed:
    """What leaders have committed of a partition."""

    batches: Batches = attrs.field(factory=Batches)
    compacted: CompactedPartition = attrs.field(factory=CompactedPartition)
    """The same of a compacted topic, record by record."""


def held_batches(log: Any, start: int = 0) -> list[LogBatch]:
    """The batches of a log from an offset on as they lie in its files, without a call of the broker."""
    found: list[LogBatch] = []
    if not log.segments:
        return found
    files = log.files._files
    for segment in log.segments[log.segment_at(start) :]:
        content = files.content(segment.path(LOG_SUFFIX))[: segment.size]
        found += [batch for batch in log_batches(content) if batch.last_offset >= start]
    return found
