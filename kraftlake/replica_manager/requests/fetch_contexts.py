"""Fetch requests within fetch sessions (KIP-227): the partitions to read, and the reduction of the response."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.replica_manager.fetch.fetch_session import FINAL_EPOCH, FIRST_EPOCH, NO_SESSION, next_epoch
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest, FetchResponse
from kraftlake.replica_manager.partition.leader import FetchPartition
from kraftlake.replica_manager.requests.fetch_session_cache import (
    CachedPartition,
    FetchSessionCache,
    LeaderFetchSession,
)
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)


@attrs.frozen
class FetchContext:
    """One fetch request: reads `partitions` in their order. Source: org.apache.kafka.server.FetchContext.

    `respond` makes the response from the read partitions; or `withhold` makes an empty one instead, for a throttled
    client, after which the session is as before.
    """

    partitions: Mapping[TopicPartition, FetchPartition]
    respond: Callable[[Mapping[TopicPartition, FetchedPartition]], FetchResponse]
    withhold: Callable[[], FetchResponse] = FetchResponse


class FetchManager:
    """The fetch sessions of this broker's consumers and followers. Source: org.apache.kafka.server.FetchManager."""

    def __init__(self, cache: FetchSessionCache) -> None:
        self.cache = cache

    def new_context(self, request: FetchRequest) -> FetchContext:
        """The context of a request. A full request ends the session that it names."""
        cache, id_, wanted = self.cache, request.session_id, request.partitions
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            if id_ != NO_SESSION:
                cache.remove(id_)
            if request.session_epoch == FINAL_EPOCH:
                return FetchContext(wanted, _sessionless)
            return FetchContext(wanted, partial(_full, cache, wanted, request.params.is_from_follower))
        with cache.lock:
            session = cache.get(id_)
            if session is None:
                return _failed(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if session.epoch != request.session_epoch:
                return _failed(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            session.update(wanted, request.forgotten, request.forgotten_ids)
            if not session.partitions:
                cache.remove(id_)
                return FetchContext(wanted, _sessionless)
            cache.touch(session)
            session.epoch = next_epoch(session.epoch)
            remembered = {name: cached.wanted for name, cached in session.partitions.items()}
            answer = partial(_incremental, cache, session, session.epoch)
            return FetchContext(remembered, answer, partial(answer, None))


def _sessionless(answers: Mapping[TopicPartition, FetchedPartition]) -> FetchResponse:
    """Return all answers."""
    return FetchResponse(partitions=answers)


def _failed(error: ErrorCode) -> FetchContext:
    """Return a context that reads nothing, and responds with the error."""
    failed = FetchResponse(error=error)
    return FetchContext({}, lambda _: failed, lambda: failed)


def _full(
    cache: FetchSessionCache,
    wanted: Mapping[TopicPartition, FetchPartition],
    from_follower: bool,
    answers: Mapping[TopicPartition, FetchedPartition],
) -> FetchResponse:
    """Return all answers, and the id of a new session if the cache has room for one."""
    remembered = {
        name: CachedPartition(wanted[name], answer.high_watermark, answer.log_start_offset)
        for name, answer in answers.items()
    }
    return FetchResponse(session_id=cache.create(privileged=from_follower, partitions=remembered), partitions=answers)


def _incremental(
    cache: FetchSessionCache,
    session: LeaderFetchSession,
    epoch: int,
    answers: Mapping[TopicPartition, FetchedPartition] | None,
) -> FetchResponse:
    """Return the changes since the session's last response; an error if a later request has advanced the session.

    Without `answers` nothing counts as sent.
    """
    with cache.lock:
        if session.epoch != epoch:
            _log.info("fetch_session_went_on", session=session.id, epoch=session.epoch)
            return FetchResponse(error=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.id)
        return FetchResponse(session_id=session.id, partitions={} if answers is None else session.news(answers))
