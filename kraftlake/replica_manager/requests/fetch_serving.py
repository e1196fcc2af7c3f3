"""Answers the fetches of followers within their sessions. Source: kafka.server.KafkaApis.handleFetchRequest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest, FetchResponse
from kraftlake.replica_manager.logs.log_batch import joined
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.log_reads import FetchAnswer
from kraftlake.replica_manager.requests.request_server import RequestServer

_REFUSED: Final = FetchAnswer(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def serve_fetch(
    server: RequestServer,
    sessions: FetchManager,
    request: FetchRequest,
    on_answer: Callable[[FetchResponse], None],
    *,
    on_fault: Callable[[], object] | None = None,
    throttle: ReplicationQuota | None = None,
    withholds: Callable[[Mapping[TopicPartition, FetchedPartition]], bool] = lambda _: False,
    may_read: Callable[[str, int], bool] | None = None,
) -> None:
    """Answer once `min_bytes` of the request can be sent, or after its `max_wait_ms`.

    `may_read` authorizes the reader: it is called with each request for all topics of its session, with the number of a
    topic's partitions. `throttle` is the leader's quota (leader.replication.throttled.rate); it counts the bytes sent
    of throttled replicas. If `withholds`
    returns True for the read partitions, the answer is empty, and the session's next answer has them.
    """
    context = sessions.new_context(request)
    asked = context.partitions
    refused: dict[TopicPartition, FetchAnswer] = {}
    if may_read is not None:
        topics = Counter(name.topic for name in asked)
        hidden = {topic for topic, count in topics.items() if not may_read(topic, count)}
        refused = {name: _REFUSED for name in asked if name.topic in hidden}

    def answered(answers: Mapping[TopicPartition, FetchAnswer]) -> None:
        every = {**answers, **refused}
        fetched = {name: fetched_of(every[name], one.topic_id) for name, one in asked.items()}
        response = context.withhold() if withholds(fetched) else context.respond(fetched)
        if throttle is not None:
            sent = sum(len(one.data) for name, one in response.partitions.items() if throttle.is_throttled(name))
            if sent:
                throttle.record(sent)
        on_answer(response)

    wanted = {name: one for name, one in asked.items() if name not in refused} if refused else asked
    server.fetch_messages(request.params, wanted, on_answer=answered, on_fault=on_fault, throttle=throttle)


def fetched_of(answer: FetchAnswer, topic_id: Uuid | None = None) -> FetchedPartition:
    """Return the response part for the read of one partition, under the id of the request."""
    read = answer.read
    if read is None:
        return FetchedPartition(error=answer.error, topic_id=topic_id)
    return FetchedPartition(
        error=answer.error,
        topic_id=topic_id,
        data=joined(read.data.batches),
        high_watermark=read.high_watermark,
        log_start_offset=read.log_start_offset,
        diverging_epoch=read.diverging_epoch,
        last_stable_offset=read.last_stable_offset,
        aborted_transactions=read.data.aborted_transactions,
        preferred_read_replica=answer.preferred_read_replica,
    )
