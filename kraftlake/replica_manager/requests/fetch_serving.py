"""A follower's fetch, answered by the leader within its session. Source: kafka.server.KafkaApis.handleFetchRequest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest, FetchResponse
from kraftlake.replica_manager.logs.log_batch import joined
from kraftlake.replica_manager.logs.partition_log import FetchIsolation
from kraftlake.replica_manager.partition.leader import FetchParams
from kraftlake.replica_manager.replication_quota import ReplicaQuota
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager, SessionlessContext
from kraftlake.replica_manager.requests.log_reads import FetchAnswer, read_from_log

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager
    from kraftlake.replica_manager.requests.request_server import RequestServer


def serve_fetch(
    server: RequestServer,
    sessions: FetchManager,
    request: FetchRequest,
    on_answer: Callable[[FetchResponse], None],
    *,
    throttle: ReplicaQuota | None = None,
) -> None:
    """Answer when there is enough to send, or `request.max_wait_ms` are over.

    `throttle` is the leader's quota (leader.replication.throttled.rate): what it holds for is counted when it is sent.
    """
    context = sessions.new_context(request)

    def answered(answers: Mapping[TopicPartition, FetchAnswer]) -> None:
        response = context.respond({name: fetched_of(answer) for name, answer in answers.items()})
        if throttle is not None:
            sent = sum(len(one.data) for name, one in response.partitions.items() if throttle.is_throttled(name))
            if sent:
                throttle.record(sent)
        on_answer(response)

    server.fetch_messages(
        _params(request, request.max_wait_ms), context.partitions, on_answer=answered, throttle=throttle
    )


def answer_fetch(manager: ReplicaManager, request: FetchRequest, sessions: FetchManager | None = None) -> FetchResponse:
    """What `manager` has for a follower now, without waiting for data; without `sessions` none is begun.

    At most `max_bytes`, but one batch at least, so that one larger than that can't stop a follower (KIP-74).
    """
    context = SessionlessContext(request.partitions) if sessions is None else sessions.new_context(request)
    answers = read_from_log(manager, _params(request, 0), context.partitions)
    return context.respond({name: fetched_of(answer) for name, answer in answers.items()})


def fetched_of(answer: FetchAnswer) -> FetchedPartition:
    """What a follower is sent of what was read."""
    read = answer.read
    if read is None:
        return FetchedPartition(error=answer.error)
    return FetchedPartition(
        error=answer.error,
        data=joined(read.data.batches),
        high_watermark=read.high_watermark,
        log_start_offset=read.log_start_offset,
        diverging_epoch=read.diverging_epoch,
    )


def _params(request: FetchRequest, max_wait_ms: int) -> FetchParams:
    return FetchParams(
        replica_id=request.replica_id,
        replica_epoch=request.replica_epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        isolation=FetchIsolation.LOG_END,
    )
