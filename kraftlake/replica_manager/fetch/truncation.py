"""Where a follower that has diverged truncates to (KIP-101, KIP-279)."""

from __future__ import annotations

from kraftlake.replica_manager.logs.partition_log import OffsetAndEpoch, PartitionLog
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


def truncation_offset(log: PartitionLog, end: OffsetAndEpoch | None, fetch_offset: int) -> tuple[int, bool]:
    """The offset to truncate to, and whether that is the last word.

    `end` is where the leader says that the largest epoch at or below ours ended, None where it knows none: then to
    `fetch_offset`, where fetching was to begin. An epoch that we don't know ends, for us, where the one before it did;
    the leader is then asked about that one.
    """
    if end is None:
        _log.warning("leader_knows_no_epoch", partition=str(log.topic_partition), truncated_to=fetch_offset)
        return fetch_offset, True
    ours = log.end_offset_for_epoch(end.leader_epoch)
    if ours is None:
        return min(end.offset, log.log_end_offset), True
    if ours.leader_epoch != end.leader_epoch:
        return min(ours.offset, log.log_end_offset), False
    return min(ours.offset, end.offset, log.log_end_offset), True
