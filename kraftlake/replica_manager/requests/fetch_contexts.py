"""What a fetch request asks for within its session, and the answer that is left of all that was read (KIP-227)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode
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


class FetchContext(Protocol):
    """One request: `partitions` are to be read in their order. Source: org.apache.kafka.server.FetchContext."""

    @property
    def partitions(self) -> Mapping[TopicPartition, FetchPartition]:
        """What the request asks for, with what its session remembers."""

    def respond(self, answers: Mapping[TopicPartition, FetchedPartition]) -> FetchResponse:
        """The answer to the request, of what was read; called once."""


@attrs.frozen
class SessionlessContext:
    """A request that wants no session: everything that was read is the answer."""

    partitions: Mapping[TopicPartition, FetchPartition]

    def respond(self, answers: Mapping[TopicPartition, FetchedPartition]) -> FetchResponse:
        """All of it."""
        return FetchResponse(partitions=answers)


@attrs.frozen
class SessionErrorContext:
    """A request of a session that is not, or not as far: nothing is read."""

    error: ErrorCode

    @property
    def partitions(self) -> Mapping[TopicPartition, FetchPartition]:
        """Nothing."""
        return {}

    def respond(self, answers: Mapping[TopicPartition, FetchedPartition]) -> FetchResponse:  # noqa: ARG002
        """The error."""
        return FetchResponse(error=self.error)


@attrs.frozen
class FullContext:
    """A request that says everything: a session begins with its answer, where there is room for one."""

    cache: FetchSessionCache
    partitions: Mapping[TopicPartition, FetchPartition]
    from_follower: bool

    def respond(self, answers: Mapping[TopicPartition, FetchedPartition]) -> FetchResponse:
        """All of it, and the session's id."""
        remembered = {
            name: CachedPartition(self.partitions[name], answer.high_watermark, answer.log_start_offset)
            for name, answer in answers.items()
        }
        id_ = self.cache.create(privileged=self.from_follower, partitions=remembered)
        return FetchResponse(session_id=id_, partitions=answers)


@attrs.frozen
class IncrementalContext:
    """A request within a session: what has not changed is left out of the answer."""

    cache: FetchSessionCache
    session: LeaderFetchSession
    epoch: int

    @property
    def partitions(self) -> Mapping[TopicPartition, FetchPartition]:
        """All that the session asks for."""
        with self.cache.lock:
            return {name: cached.wanted for name, cached in self.session.partitions.items()}

    def respond(self, answers: Mapping[TopicPartition, FetchedPartition]) -> FetchResponse:
        """What is new; INVALID_FETCH_SESSION_EPOCH where another request of the session has come meanwhile."""
        with self.cache.lock:
            if self.session.epoch != next_epoch(self.epoch):
                _log.info("fetch_session_went_on", session=self.session.id, epoch=self.session.epoch)
                return FetchResponse(error=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=self.session.id)
            return FetchResponse(session_id=self.session.id, partitions=self.session.news(answers))


class FetchManager:
    """Knows the sessions of those who fetch from this broker. Source: org.apache.kafka.server.FetchManager."""

    def __init__(self, cache: FetchSessionCache) -> None:
        self.cache = cache

    def new_context(self, request: FetchRequest) -> FetchContext:
        """What a request asks for. One that says everything ends the session that it names."""
        cache, id_ = self.cache, request.session_id
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            if id_ != NO_SESSION:
                cache.remove(id_)
            if request.session_epoch == FINAL_EPOCH:
                return SessionlessContext(request.partitions)
            return FullContext(cache, request.partitions, request.replica_id >= 0)
        with cache.lock:
            session = cache.get(id_)
            if session is None:
                return SessionErrorContext(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if session.epoch != request.session_epoch:
                return SessionErrorContext(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            session.update(request.partitions, request.forgotten)
            if not session.partitions:
                cache.remove(id_)
                return SessionlessContext(request.partitions)
            cache.touch(session)
            session.epoch = next_epoch(session.epoch)
            return IncrementalContext(cache, session, request.session_epoch)
