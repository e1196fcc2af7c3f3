"""The work of a partition for clients and followers: appends, reads, offsets. Source: kafka.cluster.Partition.

Every function takes the partition's lock, unless its docstring says otherwise, and must be called without it: a moved
watermark completes requests and calls the controller, which happens after the lock is released.
"""

from __future__ import annotations

from typing import Final

import attrs

from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import (
    FencedLeaderEpochError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownLeaderEpochError,
)
from kraftlake.replica_manager.logs.client_batches import prepared_batches
from kraftlake.replica_manager.logs.log_values import (
    AppendOrigin,
    FetchDataInfo,
    FetchIsolation,
    LogAppendInfo,
    TimestampAndOffset,
)
from kraftlake.replica_manager.logs.partition_log import PartitionLog, readable_end
from kraftlake.replica_manager.logs.timestamps import EARLIEST_LOCAL_TIMESTAMP, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kraftlake.replica_manager.partition.isr_changes import maybe_expand
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.partition.replica import NO_BROKER_EPOCH, FollowerFetch, Replica

CONSUMER: Final = -1
"""The replica id in a consumer's fetch."""
FUTURE_REPLICA: Final = -3
"""The replica id of a future log of the same broker."""
HIGH_WATERMARK: Final = -1
"""The offset in DeleteRecords that means the high watermark."""
ALL_IN_SYNC: Final = -1
"""The number of acknowledgements for acks=all."""


@attrs.frozen(kw_only=True)
class FetchParams:
    """The parameters of a whole fetch: times in ms, sizes in bytes; `rack` is a consumer's (KIP-392)."""

    replica_id: int = CONSUMER
    replica_epoch: int = NO_BROKER_EPOCH
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 * 1024 * 1024
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK
    rack: str | None = None

    @property
    def is_from_follower(self) -> bool:
        """Whether a broker sends the fetch."""
        return self.replica_id >= 0

    @property
    def fetch_only_leader(self) -> bool:
        """Whether only the leader may answer: to followers, and to consumers without a rack."""
        return self.is_from_follower or (self.replica_id == CONSUMER and self.rack is None)


@attrs.frozen(kw_only=True, weakref_slot=False)
class FetchPartition:
    """The fetch of one partition; id and epochs are None if the client is too old to send them."""

    topic_id: Uuid | None = None
    fetch_offset: int
    log_start_offset: int = -1
    max_bytes: int = 1024 * 1024
    current_leader_epoch: int | None = None
    last_fetched_epoch: int | None = None


@attrs.frozen(kw_only=True, weakref_slot=False)
class LogReadInfo:
    """The result of a read, with the log's offsets before the read.

    A result with a `diverging_epoch` has no data: after that end, the reader's log has records that this log lacks.
    """

    data: FetchDataInfo
    diverging_epoch: OffsetAndEpoch | None = None
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int


@attrs.frozen(kw_only=True)
class DeleteRecordsResult:
    """The result of a deletion, which is complete once `low_watermark` has reached `requested_offset`.

    `low_watermark` is the lowest log start offset of live replicas.
    """

    requested_offset: int
    low_watermark: int


def append_records_to_leader(
    partition: Partition, data: bytes, *, origin: AppendOrigin = AppendOrigin.CLIENT, required_acks: int = ALL_IN_SYNC
) -> LogAppendInfo:
    """Append clients' batches.

    Raises NotLeaderOrFollowerError if this broker does not lead, NotEnoughReplicasError for acks=all with an ISR below
    min.insync.replicas, and the errors of the log. `leader_hw_incremented` shows whether the high watermark moved: the
    caller completes the requests that waited for it, or for new data.
    """
    with partition.lock:
        log = log_with_epoch(partition, None, require_leader=True)
        in_sync, wanted = len(partition.in_sync.state.isr), partition.in_sync.effective_min_isr(log)
        if required_acks == ALL_IN_SYNC and in_sync < wanted:
            raise NotEnoughReplicasError(
                f"{partition.topic_partition} has {in_sync} replicas in sync, and {wanted} have to be."
            )
        append_time = None
        if origin is AppendOrigin.CLIENT:
            data, append_time = prepared_batches(data, log.config, partition.context.clock.milliseconds())
        info = log.append_as_leader(data, partition.leader_epoch, origin)
        # the leader may be alone in the ISR
        moved = partition.in_sync.maybe_increment_high_watermark(log, partition.context.clock.milliseconds())
    if info.log_append_time is None:
        info = attrs.evolve(info, log_append_time=append_time)
    return attrs.evolve(info, leader_hw_incremented=moved)


def fetch_records(
    partition: Partition,
    params: FetchParams,
    fetch: FetchPartition,
    *,
    max_bytes: int | None = None,
    min_one_message: bool = True,
    update_fetch_state: bool = True,
) -> LogReadInfo:
    """Read for a consumer or a follower; a follower's fetch also updates its fetch state.

    Raises NotLeaderOrFollowerError, FencedLeaderEpochError, UnknownLeaderEpochError (also for a follower that is not a
    replica yet) and OffsetOutOfRangeError.
    """
    now = partition.context.clock.milliseconds()
    limit = fetch.max_bytes if max_bytes is None else min(max_bytes, fetch.max_bytes)
    with partition.lock:
        log = log_with_epoch(partition, fetch.current_leader_epoch, require_leader=params.fetch_only_leader)
        follower = _follower(partition, params.replica_id, fetch) if params.is_from_follower else None
        read = _read(partition, log, fetch, limit, params.isolation, min_one_message=min_one_message)
    if follower is not None and update_fetch_state and read.diverging_epoch is None:
        fetched = FollowerFetch(
            fetch_offset=read.data.fetch_offset,
            log_start_offset=fetch.log_start_offset,
            broker_epoch=params.replica_epoch,
            time_ms=now,
            leader_end_offset=read.log_end_offset,
        )
        update_follower_fetch_state(partition, follower, fetched)
    return read


def update_follower_fetch_state(partition: Partition, replica: Replica, fetch: FollowerFetch) -> None:
    """Update the fetch state of a follower, which may join the ISR and move the high and the low watermark.

    Raises NotLeaderOrFollowerError for an earlier incarnation of the follower's broker.
    """
    moves_start = fetch.log_start_offset != replica.state.log_start_offset
    with partition.lock:
        low_before = low_watermark(partition) if moves_start and partition.is_leader else -1
        end_before = replica.state.log_end_offset
        replica.update_fetch_state(fetch, partition.context.metadata.alive_broker_epoch(replica.broker_id))
        low_moved = moves_start and partition.is_leader and low_watermark(partition) > low_before
    maybe_expand(partition, replica)
    with partition.lock:
        log = partition.leader_log
        moved = (
            log is not None
            # it may wait for a replica that has been fenced since, which nothing else reports
            and (replica.state.log_end_offset != end_before or replica.state.log_end_offset > log.high_watermark)
            and partition.in_sync.maybe_increment_high_watermark(log, fetch.time_ms)
        )
    if moved or low_moved:
        partition.complete_delayed_operations()


def check_enough_replicas_reach_offset(partition: Partition, required_offset: int) -> tuple[bool, ErrorCode]:
    """Whether the records below `required_offset` are committed, and an error code.

    Committed records with an ISR that has fallen below its minimum are answered with an error.
    """
    with partition.lock:
        log = partition.leader_log
        if log is None:
            return False, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if log.high_watermark < required_offset:
            return False, ErrorCode.NONE
        enough = partition.in_sync.effective_min_isr(log) <= len(partition.in_sync.state.maximal_isr)
        return True, ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def offset_snapshot(partition: Partition, fetch: FetchPartition) -> LogReadInfo:
    """The offsets of a log without a read, on leader or follower.

    Raises FencedLeaderEpochError and UnknownLeaderEpochError.
    """
    with partition.lock:
        log = log_with_epoch(partition, fetch.current_leader_epoch, require_leader=False)
        return _read_info(log, FetchDataInfo(fetch_offset=fetch.fetch_offset))


def low_watermark(partition: Partition) -> int:
    """The lowest log start offset of this replica, its future log and all live followers. Needs the lock."""
    lowest = log_with_epoch(partition, None, require_leader=True).log_start_offset
    for id_, replica in partition.in_sync.remote_replicas.items():
        if replica.state.log_start_offset < lowest and partition.context.metadata.has_alive_broker(id_):
            lowest = replica.state.log_start_offset
    future = partition.future_log
    return lowest if future is None else min(lowest, future.log_start_offset)


def delete_records_on_leader(partition: Partition, offset: int) -> DeleteRecordsResult:
    """Delete the records below `offset`, or below the high watermark (−1).

    Raises PolicyViolationError if the topic is only compacted, OffsetOutOfRangeError past the high watermark.
    """
    with partition.lock:
        log = log_with_epoch(partition, None, require_leader=True)
        if log.config.is_compacted_only:
            raise PolicyViolationError(
                f"Records of {partition.topic_partition} can't be deleted: it is compacted only."
            )
        wanted = log.high_watermark if offset == HIGH_WATERMARK else offset
        if wanted < 0:
            raise OffsetOutOfRangeError(f"{offset} is no offset to delete records of {partition.topic_partition} to.")
        log.maybe_increment_log_start_offset(wanted)
        return DeleteRecordsResult(requested_offset=wanted, low_watermark=low_watermark(partition))


def last_offset_for_leader_epoch(
    partition: Partition, current_leader_epoch: int | None, leader_epoch: int, *, require_leader: bool = True
) -> OffsetAndEpoch | None:
    """The end of the largest known epoch at or below `leader_epoch`; None without one."""
    with partition.lock:
        log = log_with_epoch(partition, current_leader_epoch, require_leader=require_leader)
        return log.end_offset_for_epoch(leader_epoch)


def offset_for_timestamp(
    partition: Partition,
    timestamp: int,
    *,
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    current_leader_epoch: int | None = None,
    require_leader: bool = True,
) -> TimestampAndOffset | None:
    """Return the first record at or after a timestamp (epoch ms, or one of ListOffsets' negative values).

    None without one. A client sees the log up to its isolation, a follower (LOG_END) the whole log. Raises
    OffsetNotAvailableError for clients of a new leader whose high watermark has not reached the start of its epoch: the
    answer could be lower than an earlier one, or miss records.
    """
    with partition.lock:
        log = log_with_epoch(partition, current_leader_epoch, require_leader=require_leader)
        is_client = isolation is not FetchIsolation.LOG_END
        end = readable_end(log, isolation)
        start = partition.leader_epoch_start_offset
        lags = is_client and start is not None and start > log.high_watermark
        if timestamp == LATEST_TIMESTAMP:
            if lags:
                raise _not_available(partition)
            return TimestampAndOffset(-1, end, partition.leader_epoch)
        found = log.offset_for_timestamp(timestamp)
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            return found
        if found is not None and found.offset < end:
            return found
        if lags:
            raise _not_available(partition)
        return None


def _not_available(partition: Partition) -> OffsetNotAvailableError:
    return OffsetNotAvailableError(
        f"The high watermark of {partition.topic_partition} has not reached offset "
        f"{partition.leader_epoch_start_offset}, where leader epoch {partition.leader_epoch} began."
    )


def log_with_epoch(partition: Partition, epoch: int | None, *, require_leader: bool) -> PartitionLog:
    """Return the log, for a request with the current leader epoch or none. Needs the lock.

    Raises FencedLeaderEpochError for an older epoch, UnknownLeaderEpochError for a newer one, NotLeaderOrFollowerError.
    """
    known, name = partition.leader_epoch, partition.topic_partition
    if epoch is not None and epoch < known:
        raise FencedLeaderEpochError(f"Leader epoch {epoch} of {name} is over: {known} is the current one.")
    if epoch is not None and epoch > known:
        raise UnknownLeaderEpochError(
            f"Leader epoch {epoch} of {name} is not known yet: {known} is the last one known."
        )
    if require_leader and not partition.is_leader:
        raise NotLeaderOrFollowerError(f"Broker {partition.context.broker_id} does not lead {name}.")
    return partition.local_log


def _follower(partition: Partition, broker_id: int, fetch: FetchPartition) -> Replica:
    replica = partition.replica(broker_id)
    if replica is not None:
        return replica
    words = f"Broker {broker_id} is no replica of {partition.topic_partition} in leader epoch {partition.leader_epoch}."
    if fetch.current_leader_epoch is None:
        raise NotLeaderOrFollowerError(words)
    raise UnknownLeaderEpochError(words)  # a reassignment that this broker has not seen yet may add it


def _read_info(log: PartitionLog, data: FetchDataInfo, diverging: OffsetAndEpoch | None = None) -> LogReadInfo:
    return LogReadInfo(
        data=data,
        diverging_epoch=diverging,
        high_watermark=log.high_watermark,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
    )


def _read(
    partition: Partition,
    log: PartitionLog,
    fetch: FetchPartition,
    max_bytes: int,
    isolation: FetchIsolation,
    *,
    min_one_message: bool,
) -> LogReadInfo:
    offset, fetched_epoch = fetch.fetch_offset, fetch.last_fetched_epoch
    if fetched_epoch is not None:
        end = log.end_offset_for_epoch(fetched_epoch)
        if end is None:
            raise OffsetOutOfRangeError(
                f"Where leader epoch {fetched_epoch} of {partition.topic_partition} ended is not known here."
            )
        if offset < log.log_start_offset:
            raise OffsetOutOfRangeError(
                f"Offset {offset} of {partition.topic_partition} is below {log.log_start_offset}, the log's start."
            )
        if end.epoch < fetched_epoch or end.offset < offset:
            return _read_info(log, FetchDataInfo(fetch_offset=offset), end)
    return _read_info(log, log.read(offset, max_bytes, isolation, min_one_message=min_one_message))
