"""What must hold of compacted logs: offsets and records never change, and only what is superseded or expired goes.

A replica has its holes from its own cleaner, or from the leaders it was copied from. So which records may be gone is
known of the partition; what one exchange of segments may remove is known of the replica.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

import attrs

from kraftlake.records.batch_header import header_at
from kraftlake.replica_manager.logs.cleaning.batch_content import delete_horizon
from kraftlake.replica_manager.logs.disk.disk_log import CLEANED
from kraftlake.replica_manager.logs.log_batch import LogBatch, log_batches
from simulator.data_batches import records_in

DELETE_RETENTION_MS = 300_000
_CONFIGS = {
    "internal.segment.bytes": "3000", "min.cleanable.dirty.ratio": "0.2",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}  # fmt: skip
COMPACTED = {
    "latest": {"cleanup.policy": "compact", **_CONFIGS},
    "recent": {"cleanup.policy": "compact,delete", **_CONFIGS},
}
"""The configs of the compacted topics, by name."""
LOG_SUFFIX = ".log"


@attrs.frozen
class Held:
    """A record of a log: its key, the checksum of key and value, and from when (epoch ms) a tombstone may go."""

    key: bytes
    checksum: int
    is_tombstone: bool
    horizon: int | None


Records = dict[int, Held]
"""Records by offset."""
_MOST_KNOWN = 2_000
_known: dict[bytes, Records] = {}


def records_of(batches: Iterable[LogBatch]) -> Records:
    """The records of batches."""
    found: Records = {}
    for batch in batches:
        found.update(_records(bytes(batch.data), batch))
    return found


def _records(data: bytes, batch: LogBatch) -> Records:
    """The records of a batch by its bytes, which all replicas have alike; they are decoded once."""
    found = _known.get(data)
    if found is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        horizon = delete_horizon(header_at(data))
        found = _known[data] = {
            offset: Held(key or b"", crc32(repr((key, value)).encode()), value is None, horizon)
            for offset, _, key, value in records_in(batch)
        }
    return found


@attrs.define
class CompactedPartition:
    """What was committed of a compacted partition, and what of it may be gone."""

    records: Records = attrs.field(factory=dict)
    cleaned_to: int = 0
    """The offset below which a replica may have been cleaned."""
    cleanings: int = 0
    """How often segments of a replica were exchanged."""
    _by_key: dict[bytes, list[int]] = attrs.field(factory=dict)
    _expired: set[int] = attrs.field(factory=set)
    """The tombstones that a replica has removed, since it was time."""

    def commit(self, batch: LogBatch) -> None:
        """Take the next committed batch, which no cleaner has seen."""
        for offset, record in records_of([batch]).items():
            self.records[offset] = record
            self._by_key.setdefault(record.key, []).append(offset)

    def problem(self, held: Mapping[int, Held], start: int, end: int) -> str:
        """Why a replica, or a reader, has not what it has to have of the offsets [start, end); "" if it has."""
        for offset in range(start, end):
            found, wanted = held.get(offset), self.records.get(offset)
            if found is None:
                if wanted is not None and not self._may_be_gone(offset, wanted, self.cleaned_to):
                    return f"lacks {wanted.key!r} at {offset}, the last record of its key below {self.cleaned_to}"
            elif wanted is None or found.checksum != wanted.checksum:
                return f"has another record at {offset} than was committed"
        return ""

    def cleaned(self, before: Mapping[int, Held], after: Mapping[int, Held], end: int, now_ms: int) -> str:
        """What is wrong with records that a replica puts in place of others, "" if nothing is.

        `end` is where its inactive and committed part ends, `now_ms` the time of the cleaning.
        """
        self.cleanings += 1
        self.cleaned_to = max(self.cleaned_to, end)
        for offset, was in before.items():
            kept = after.get(offset)
            if kept is None:
                is_due = was.is_tombstone and was.horizon is not None and was.horizon <= now_ms
                if is_due:
                    self._expired.add(offset)
                elif not self._may_be_gone(offset, was, end, is_own=True):
                    return f"removes {was.key!r} at {offset}, the last record of its key below {end}"
            elif kept.checksum != was.checksum:
                return f"changes the record at {offset}"
            elif kept.is_tombstone and kept.horizon != (was.horizon or now_ms + DELETE_RETENTION_MS):
                return f"lets the tombstone at {offset} go at {kept.horizon}, cleaned at {now_ms} with {was.horizon}"
        added = after.keys() - before.keys()
        return f"adds records at {sorted(added)[:3]}" if added else ""

    def _may_be_gone(self, offset: int, record: Held, end: int, *, is_own: bool = False) -> bool:
        if offset >= end:
            return False
        if offset in self._expired and not is_own:
            return True
        offsets = self._by_key.get(record.key, [])
        later = bisect_right(offsets, offset)
        return later < len(offsets) and offsets[later] < end


def cleaned_records(log: Any, old: Any) -> Records:
    """The records that a cleaner has left of segments, before the exchange; without a call of the broker."""
    return records_of(log_batches(log.files._files.content(old[0].path(LOG_SUFFIX) + CLEANED)))
