"""The policy for the next snapshot of a log: by bytes, records or time since the last one, as in Kafka."""

from __future__ import annotations

import attrs

from kraftlake.runtime.errors import UsageError


@attrs.frozen(kw_only=True)
class SnapshotPolicy:
    """The bounds between two snapshots, each with Kafka's default; None means no bound.

    `max_bytes` is `metadata.log.max.record.bytes.between.snapshots`, `max_interval_ms` is
    `metadata.log.max.snapshot.interval.ms`; Kafka has no bound on records. Source:
    org.apache.kafka.image.publisher.SnapshotGenerator.
    """

    max_bytes: int | None = 20 * 1024 * 1024
    max_records: int | None = None
    max_interval_ms: int | None = 60 * 60 * 1000

    def __attrs_post_init__(self) -> None:
        for bound in (self.max_bytes, self.max_records, self.max_interval_ms):
            if bound is not None and bound <= 0:
                raise UsageError("A bound between two snapshots must be above 0; leave it out for none.")


@attrs.frozen(kw_only=True)
class SinceSnapshot:
    """The amount appended since the last snapshot, which was taken at `taken_at_ms` (epoch milliseconds)."""

    taken_at_ms: int
    size_in_bytes: int = 0
    records: int = 0

    def after(self, *, size_in_bytes: int, records: int) -> SinceSnapshot:
        """Return these amounts increased by another append."""
        assert size_in_bytes >= 0
        assert records >= 0
        return attrs.evolve(self, size_in_bytes=self.size_in_bytes + size_in_bytes, records=self.records + records)

    def why_due(self, policy: SnapshotPolicy, now_ms: int) -> str | None:
        """The reason, in words, why a snapshot is due now; None if none is due, or if nothing was appended."""
        if not self.records:
            return None
        if policy.max_bytes is not None and self.size_in_bytes >= policy.max_bytes:
            return f"{self.size_in_bytes} bytes were appended since the last one"
        if policy.max_records is not None and self.records >= policy.max_records:
            return f"{self.records} records were appended since the last one"
        if policy.max_interval_ms is not None and now_ms - self.taken_at_ms >= policy.max_interval_ms:
            return f"the last one is {now_ms - self.taken_at_ms} ms old"
        return None
