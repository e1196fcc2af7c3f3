"""The offset to which a diverged follower truncates (KIP-101, KIP-279)."""

from __future__ import annotations

from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


def truncation_offset(log: PartitionLog, end: OffsetAndEpoch | None, fetch_offset: int) -> tuple[int, bool]:
    """The offset to truncate to, and whether the truncation is complete.

    `end` is the leader's end of the largest epoch at or below the log's latest one; if it is None, because the leader
    has no such epoch, the log truncates to `fetch_offset`. If the log lacks the leader's epoch, the log truncates to
    the end of the epoch before it, and the next request asks the leader about that epoch.
    """
    if end is None:
        _log.warning("leader_knows_no_epoch", partition=str(log.topic_partition), truncated_to=fetch_offset)
        return fetch_offset, True
    ours = log.end_offset_for_epoch(end.epoch)
    if ours is None:
        return min(end.offset, log.log_end_offset), True
    if ours.epoch != end.epoch:
        return min(ours.offset, log.log_end_offset), False
    return min(ours.offset, end.offset, log.log_end_offset), True
