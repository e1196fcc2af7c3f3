"""Handler of Fetch, for consumers and followers. Source: kafka.server.KafkaApis.handleFetchRequest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.image.kafka_names import AclOperation
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.protocol.ids import kafka_id, wire_id
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest, FetchResponse
from kraftlake.replica_manager.logs.log_values import FetchIsolation
from kraftlake.replica_manager.partition.leader import FetchParams, FetchPartition
from kraftlake.replica_manager.replication_quota import ReplicationQuota
from kraftlake.replica_manager.requests.fetch_contexts import FetchManager
from kraftlake.replica_manager.requests.fetch_serving import serve_fetch
from kraftlake.replica_manager.requests.request_server import RequestServer
from kraftlake.server.broker.serving.context import ServingContext, fail_after_fault
from kraftlake.server.requests.dispatcher import Request
from kraftlake.server.requests.handlers import response_to
from kraftlake.server.requests.messages import of_version

_WITH_IDS: Final = 13
"""The first version of Fetch that names topics by id (KIP-516)."""
_LEADER_IN_ANSWER: Final = 16
"""The first version whose answer has the leader's address (KIP-951)."""
_EMPTY_BYTES: Final = 20
_PARTITION_BYTES: Final = 45
"""The approximate sizes of an answer without partitions, and of a partition without its records."""
_NO_SESSION_EPOCH: Final = -1
_COMMITTED: Final = 1
_ISOLATIONS: Final = (0, _COMMITTED)
_MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_NOT_READ: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""The errors with an empty list of aborted transactions in Kafka; for other errors the list is null."""


class FetchHandler:
    """Reads for consumers and followers, in sessions, and waits until enough data is available.

    A session is kept only if all topic ids of a request are known: a client whose topic is still unknown to this broker
    sends full requests until it is known.
    """

    def __init__(
        self,
        context: ServingContext,
        server: RequestServer,
        sessions: FetchManager,
        *,
        fetch_max_bytes: int = 55 * 1024 * 1024,
        leader_quota: ReplicationQuota | None = None,
    ) -> None:
        self._context = context
        self._server = server
        self._sessions = sessions
        self._fetch_max_bytes = fetch_max_bytes
        self._leader_quota = leader_quota

    def __call__(self, request: Request) -> None:
        """Answer a Fetch request."""
        body = request.body
        replica_id, replica_epoch = _replica(body)
        if replica_id >= 0 and not self._context.authorization.allows_on_cluster(request, AclOperation.CLUSTER_ACTION):
            self._refuse_all(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return
        if int(body.isolation_level) not in _ISOLATIONS:
            self._refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR, whole=True)
            return
        wanted, unknown = self._wanted(request)
        session_id, session_epoch = int(getattr(body, "session_id", 0)), int(getattr(body, "session_epoch", -1))
        if unknown and session_epoch > 0:
            self._answer(request, FetchResponse(), {}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
            return
        request = _without_partitions(request)
        throttle = request.throttle
        if throttle is not None:
            throttle.is_exempt = replica_id >= 0
        asked = FetchRequest(
            params=self._params(request, replica_id, replica_epoch),
            partitions=wanted,
            **_forgotten(body),
            session_id=session_id,
            session_epoch=_NO_SESSION_EPOCH if unknown else session_epoch,
        )

        def may_read(topic: str, partitions: int) -> bool:
            return self._context.allows_on_topic(request, AclOperation.READ, topic, count=partitions)

        serve_fetch(
            self._server, self._sessions, asked, lambda answer: self._answer(request, answer, unknown),
            on_fault=partial(fail_after_fault, request), may_read=None if replica_id >= 0 else may_read,
            throttle=self._leader_quota if replica_id >= 0 else None,
            withholds=lambda partitions: throttle is not None and throttle.withholds(_size_of(partitions.values())),
        )  # fmt: skip

    def _params(self, request: Request, replica_id: int, replica_epoch: int) -> FetchParams:
        body = request.body
        max_bytes = int(body.max_bytes)
        if replica_id < 0:
            max_bytes = min(max_bytes, self._fetch_max_bytes)
            if request.throttle is not None:
                max_bytes = min(max_bytes, request.throttle.most_fetched())
        isolation = FetchIsolation.TXN_COMMITTED if int(body.isolation_level) else FetchIsolation.HIGH_WATERMARK
        return FetchParams(
            replica_id=replica_id,
            replica_epoch=replica_epoch,
            max_wait_ms=max(0, round(request.wait_ms(body.max_wait))),
            min_bytes=min(int(body.min_bytes), max_bytes),
            max_bytes=max_bytes,
            isolation=FetchIsolation.LOG_END if replica_id >= 0 else isolation,
            rack=getattr(body, "rack_id", None),  # who could name a rack may read from followers (KIP-392)
        )

    def _wanted(
        self, request: Request
    ) -> tuple[dict[TopicPartition, FetchPartition], dict[tuple[Any, int], ErrorCode]]:
        """The partitions to read, and the errors for unknown topic ids, by topic id and partition number."""
        wanted: dict[TopicPartition, FetchPartition] = {}
        unknown: dict[tuple[Any, int], ErrorCode] = {}
        for topic in request.body.topics:
            key, name, id_ = self._named(topic)
            for one in topic.partitions:
                if name is None:
                    unknown[key, int(one.partition)] = ErrorCode.UNKNOWN_TOPIC_ID
                else:
                    wanted[TopicPartition(name, int(one.partition))] = _partition(one, id_)
        return wanted, unknown

    def _named(self, topic: Any) -> tuple[Any, str | None, Uuid | None]:
        """Return a topic's key in the answer, its name, and its id if the request has ids."""
        if not hasattr(topic, "topic_id"):
            return topic.topic, topic.topic, None
        id_ = kafka_id(topic.topic_id)
        return topic.topic_id, self._context.cache.topic_name(id_), id_

    def _refuse_all(self, request: Request, error: ErrorCode, *, whole: bool = False) -> None:
        """Refuse each partition, or the `whole` request in versions with ids, whose answer then has no partitions."""
        topics = () if whole and request.version >= _WITH_IDS else request.body.topics
        refused = {(self._named(topic)[0], int(one.partition)): error for topic in topics for one in topic.partitions}
        self._answer(request, FetchResponse(), refused, error=error if whole else ErrorCode.NONE)

    def _answer(
        self,
        request: Request,
        answer: FetchResponse,
        refused: Mapping[tuple[Any, int], ErrorCode],
        *,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        module, has_ids = request.module, request.version >= _WITH_IDS
        is_committed = int(request.body.isolation_level) == _COMMITTED
        by_topic: dict[Any, list[Any]] = defaultdict(list)
        moved: list[TopicPartition] = []
        for (key, number), code in refused.items():
            by_topic[key].append(_refusal(module, number, code))
        for name, one in answer.partitions.items():
            code = one.error
            more: dict[str, Any] = {}
            if code in _MOVED and request.version >= _LEADER_IN_ANSWER:
                more["current_leader"] = self._context.leader_of(module, name)
                moved.append(name)
            key = wire_id(one.topic_id) if has_ids else name.topic
            by_topic[key].append(_partition_data(module, name.partition, code, one, more, is_committed=is_committed))
        field = "topic_id" if has_ids else "topic"
        responses = tuple(
            module.FetchableTopicResponse(**{field: key}, partitions=tuple(partitions))
            for key, partitions in by_topic.items()
        )
        is_follower = _replica(request.body)[0] >= 0  # which knows the brokers
        endpoints = (
            self._context.leader_endpoints(module, moved, request.peer.listener) if moved and not is_follower else ()
        )
        request.answer(
            response_to(
                request,
                error_code=error if error != ErrorCode.NONE else answer.error,
                session_id=answer.session_id,
                responses=responses,
                **({"node_endpoints": endpoints} if endpoints else {}),
            )
        )


def _without_partitions(request: Request) -> Request:
    """Return the request reduced to the fields that its answer needs, to be kept while it waits."""
    lists: dict[str, tuple[()]] = {"topics": ()}
    if hasattr(request.body, "forgotten_topics_data"):
        lists["forgotten_topics_data"] = ()
    return request.reduced(replace(request.body, **lists))


def _replica(body: Any) -> tuple[int, int]:
    """Return the id and the epoch of a follower; −1 for a consumer."""
    state = getattr(body, "replica_state", None)
    if state is not None:
        return int(state.replica_id), int(state.replica_epoch)
    return int(body.replica_id), -1


def _forgotten(body: Any) -> dict[str, Any]:
    """Return the partitions that leave the session, from the fields of a FetchRequest."""
    topics = getattr(body, "forgotten_topics_data", ())
    if topics and hasattr(topics[0], "topic_id"):
        ids = ((kafka_id(topic.topic_id), int(number)) for topic in topics for number in topic.partitions)
        return {"forgotten_ids": frozenset(ids)}
    return {
        "forgotten": tuple(TopicPartition(topic.topic, int(number)) for topic in topics for number in topic.partitions)
    }


def _partition(one: Any, topic_id: Uuid | None) -> FetchPartition:
    epoch, last_epoch = int(getattr(one, "current_leader_epoch", -1)), int(getattr(one, "last_fetched_epoch", -1))
    return FetchPartition(
        topic_id=topic_id,
        fetch_offset=int(one.fetch_offset),
        log_start_offset=int(getattr(one, "log_start_offset", -1)),
        max_bytes=int(one.partition_max_bytes),
        current_leader_epoch=None if epoch < 0 else epoch,
        last_fetched_epoch=None if last_epoch < 0 else last_epoch,
    )


def _size_of(partitions: Iterable[FetchedPartition]) -> int:
    """Return the size of an answer in bytes, which a partition without news in a fetch session adds nothing to."""
    return _EMPTY_BYTES + sum(len(one.data) + _PARTITION_BYTES for one in partitions if one.data)


def _refusal(module: Any, number: int, error: ErrorCode) -> Any:
    return of_version(
        module.PartitionData,
        partition_index=number, error_code=error, high_watermark=-1, last_stable_offset=-1, aborted_transactions=(),
        records=b"",
    )  # fmt: skip


def _partition_data(
    module: Any, number: int, error: ErrorCode, one: FetchedPartition, more: Mapping[str, Any], *, is_committed: bool
) -> Any:
    fields = dict(more)
    if one.diverging_epoch is not None and hasattr(module, "EpochEndOffset"):
        end = one.diverging_epoch
        fields["diverging_epoch"] = module.EpochEndOffset(epoch=end.epoch, end_offset=end.offset)
    if one.preferred_read_replica is not None:
        fields["preferred_read_replica"] = one.preferred_read_replica
    aborted = tuple(
        module.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in one.aborted_transactions
    )
    return of_version(
        module.PartitionData,
        partition_index=number,
        error_code=error,
        high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
        log_start_offset=one.log_start_offset,
        aborted_transactions=aborted if is_committed or error in _NOT_READ else None,
        records=one.data,
        **fields,
    )
