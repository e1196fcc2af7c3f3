"""A follower's fetch, answered at once by the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ReplicationError
from kraftlake.replica_manager.leader_end_point import FetchedPartition, FetchRequest, FetchResponse
from kraftlake.replica_manager.leader_side import FetchParams, fetch_records
from kraftlake.replica_manager.log_batch import joined
from kraftlake.replica_manager.partition_log import FetchIsolation

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager


def answer_fetch(manager: ReplicaManager, request: FetchRequest) -> FetchResponse:
    """What `manager` has for a follower: without a session, and without waiting for data.

    At most `max_bytes`, but one batch at least, so that one larger than that can't stop a follower (KIP-74).
    """
    params = FetchParams(
        replica_id=request.replica_id,
        replica_epoch=request.replica_epoch,
        max_wait_ms=0,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation=FetchIsolation.LOG_END,
    )
    answers: dict[TopicPartition, FetchedPartition] = {}
    left = request.max_bytes
    nothing_yet = True
    for name, wanted in request.partitions.items():
        try:
            partition = manager.partition_or_raise(name)
            read = fetch_records(partition, params, wanted, max_bytes=left, min_one_message=nothing_yet)
        except ReplicationError as error:
            answers[name] = FetchedPartition(error=error.code)
            continue
        left = max(0, left - read.data.size_in_bytes)
        nothing_yet = nothing_yet and not read.data.size_in_bytes
        answers[name] = FetchedPartition(
            data=joined(read.data.batches),
            high_watermark=read.high_watermark,
            log_start_offset=read.log_start_offset,
            diverging_epoch=read.diverging_epoch,
        )
    return FetchResponse(partitions=answers)
