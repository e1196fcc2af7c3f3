"""The work of a partition as a follower: appends and truncations. Source: kafka.cluster.Partition.

Every function takes the partition's lock.
"""

from __future__ import annotations

from kraftlake.replica_manager.errors import NotLeaderOrFollowerError, UnexpectedAppendOffsetError
from kraftlake.replica_manager.logs.log_values import LogAppendInfo
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


def append_records_to_follower(
    partition: Partition, data: bytes, leader_epoch: int, *, is_future: bool = False
) -> LogAppendInfo | None:
    """Append batches of the leader of `leader_epoch`; None if the future log is gone.

    An empty log whose end lies within the leader's first batch (earlier records were deleted) restarts at that batch.
    Raises UnexpectedAppendOffsetError for any other batch that does not continue the log.
    """
    with partition.lock:
        log = _log_of(partition, is_future=is_future)
        if log is None:
            return None
        try:
            return log.append_as_follower(data, leader_epoch)
        except UnexpectedAppendOffsetError as error:
            end = log.log_end_offset
            if not (end == log.log_start_offset and error.first_offset < end <= error.last_offset):
                raise
            _log.info("log_starts_at_batch", partition=str(partition.topic_partition), offset=error.first_offset)
            log.truncate_fully_and_start_at(error.first_offset)
            return log.append_as_follower(data, leader_epoch)


def truncate_to(partition: Partition, offset: int, *, is_future: bool = False) -> None:
    """Remove the records from `offset` on.

    Logs a warning for an offset below the high watermark: committed records are lost.
    """
    with partition.lock:
        log = _log_of(partition, is_future=is_future)
        if log is None:
            raise NotLeaderOrFollowerError(f"There is no log of {partition.topic_partition} to truncate.")
        if offset < log.high_watermark:
            _log.warning(
                "truncated_below_high_watermark", partition=str(partition.topic_partition), offset=offset,
                high_watermark=log.high_watermark,
            )  # fmt: skip
        log.truncate_to(offset)


def truncate_fully_and_start_at(partition: Partition, offset: int, *, is_future: bool = False) -> None:
    """Remove all records, and continue at `offset`."""
    with partition.lock:
        log = _log_of(partition, is_future=is_future)
        if log is not None:
            log.truncate_fully_and_start_at(offset)


def _log_of(partition: Partition, *, is_future: bool) -> PartitionLog | None:
    return partition.future_log if is_future else partition.local_log
