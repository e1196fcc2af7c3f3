"""A Fetch of a quorum's log by an observer whom no snapshot helps, and the batches that come."""

from __future__ import annotations

from collections.abc import Sequence

from kraftlake.protocol.observer.observed_log import ObservedLog
from kraftlake.protocol.observer.quorum_observer import QuorumObserver, SnapshotNeededError
from kraftlake.protocol.observer.raw_batch import RawBatch
from kraftlake.records.batch import RecordBatch, read_batches


def fetch_log(observer: QuorumObserver, log: ObservedLog, *, wait_ms: int = 500) -> list[RawBatch]:
    """Fetch as `QuorumObserver.fetch`; SnapshotNeededError only where the leader's log has no offset to go on from.

    A leader also sends a snapshot to a caller at an earlier epoch than that of its oldest one, even where its log
    starts at offset 0: see ReplicatedLog.validateOffsetAndEpoch of Kafka.
    """
    try:
        return observer.fetch(log, wait_ms=wait_ms)
    except SnapshotNeededError as answer:
        start = answer.log_start_offset
        # A snapshot at the log's start of a later epoch than that of the record after it is of another history.
        is_other = 0 < start == log.next_offset - 1 and log.committed.epoch >= 0
        if is_other or start >= log.next_offset:
            raise
        log.pass_by(answer.snapshot)
        return observer.fetch(log, wait_ms=wait_ms)


def decoded(batches: Sequence[RawBatch]) -> list[RecordBatch]:
    """The same batches with their records. Raises CorruptDataError for what is no batch of a metadata log."""
    return [batch for raw in batches for batch in read_batches(raw.data, file="the quorum's log")]
