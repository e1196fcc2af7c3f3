"""Reads several partitions for one request: byte limits, throttled replicas, preferred read replicas."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.offset_and_epoch import OffsetAndEpoch
from kraftlake.replica_manager.errors import InconsistentTopicIdError, error_of
from kraftlake.replica_manager.logs.log_values import FetchDataInfo
from kraftlake.replica_manager.partition.leader import (
    FetchParams,
    FetchPartition,
    LogReadInfo,
    fetch_records,
    offset_snapshot,
)
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.replica_manager import ReplicaManager
from kraftlake.replica_manager.replication_quota import ReplicationQuota


@attrs.frozen(kw_only=True)
class FetchAnswer:
    """The result of a fetch from one partition; `read` is None with an error.

    With a `preferred_read_replica`, `read` has the log's offsets and no batches: the consumer has to fetch from that
    broker (KIP-392).
    """

    read: LogReadInfo | None = None
    error: ErrorCode = ErrorCode.NONE
    preferred_read_replica: int | None = None

    @property
    def data(self) -> FetchDataInfo | None:
        """The batches that were read."""
        return None if self.read is None else self.read.data

    @property
    def size_in_bytes(self) -> int:
        """The size of the batches."""
        return 0 if self.read is None else self.read.data.size_in_bytes

    @property
    def diverging_epoch(self) -> OffsetAndEpoch | None:
        """The end of the last epoch shared by the reader's log and this log, if they diverge."""
        return None if self.read is None else self.read.diverging_epoch

    @property
    def is_decisive(self) -> bool:
        """Whether a request has to be answered without waiting for more data."""
        return (
            self.error is not ErrorCode.NONE
            or self.diverging_epoch is not None
            or self.preferred_read_replica is not None
        )


def read_from_log(
    replica_manager: ReplicaManager,
    params: FetchParams,
    wanted: Mapping[TopicPartition, FetchPartition],
    *,
    throttle: ReplicationQuota | None = None,
    update_fetch_state: bool = True,
) -> dict[TopicPartition, FetchAnswer]:
    """Read the partitions in their order, at most `params.max_bytes` in total.

    The first partition with data returns at least one batch of any size, so that the reader advances (KIP-74). A
    throttled partition returns no batch to a follower outside the ISR. Source: ReplicaManager.readFromLog.
    """
    answers: dict[TopicPartition, FetchAnswer] = {}
    left, min_one_message = params.max_bytes, True
    for name, fetch in wanted.items():
        try:
            partition = replica_manager.partition_or_raise(name)
            if fetch.topic_id not in (None, partition.topic_id):
                raise InconsistentTopicIdError(f"{name} has topic id {partition.topic_id} here, not {fetch.topic_id}.")
            nearer = preferred_read_replica(partition, params, fetch)
            if nearer is not None:
                answers[name] = FetchAnswer(read=offset_snapshot(partition, fetch), preferred_read_replica=nearer)
                continue
            held_back = throttle is not None and must_be_throttled(throttle, partition, params.replica_id)
            read = fetch_records(
                partition,
                params,
                fetch,
                max_bytes=0 if held_back else left,
                min_one_message=min_one_message and not held_back,
                update_fetch_state=update_fetch_state,
            )
        except Exception as error:  # an error of one partition must not fail the others
            answers[name] = FetchAnswer(error=error_of(error))
            continue
        answers[name] = FetchAnswer(read=read)
        if read.data.size_in_bytes:
            min_one_message = False
            left = max(0, left - read.data.size_in_bytes)
    return answers


def must_be_throttled(throttle: ReplicationQuota, partition: Partition, replica_id: int) -> bool:
    """Whether the quota delays a follower: never one in the ISR. Source: ReplicaManager.shouldLeaderThrottle."""
    return (
        replica_id >= 0
        and replica_id not in partition.in_sync.state.isr
        and throttle.is_throttled(partition.topic_partition)
        and throttle.is_exceeded()
    )


def preferred_read_replica(partition: Partition, params: FetchParams, fetch: FetchPartition) -> int | None:
    """The follower that a consumer should read from: the most caught-up ISR member in its rack (KIP-392).

    None for followers, for consumers without a rack, if the leader is in the rack, and if no ISR member in the rack has
    the offset. Followers outside the ISR are excluded because they may lag without limit. Source:
    ReplicaManager.findPreferredReadReplica, org.apache.kafka.common.replica.RackAwareReplicaSelector.
    """
    metadata = partition.context.metadata
    if params.is_from_follower or not params.rack or not partition.is_leader:
        return None
    if metadata.rack_of(partition.context.broker_id) == params.rack:
        return None
    candidates: list[tuple[int, int, int]] = []
    for id_, replica in partition.in_sync.remote_replicas.items():
        state = replica.state
        if (
            id_ in partition.in_sync.state.isr
            and state.log_start_offset <= fetch.fetch_offset <= state.log_end_offset
            and metadata.rack_of(id_) == params.rack
        ):
            candidates.append((state.log_end_offset, state.last_caught_up_time_ms, id_))
    return max(candidates)[2] if candidates else None
