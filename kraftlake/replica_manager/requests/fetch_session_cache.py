"""Fetch sessions as their leader keeps them (KIP-227): who asks for what, and what was last told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import SystemRandom
from threading import RLock
from typing import Final

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.errors import ErrorCode
from kraftlake.replica_manager.fetch.fetch_session import NO_SESSION
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition
from kraftlake.replica_manager.partition.leader import FetchPartition
from kraftlake.runtime.clock import Clock

EVICTION_MS: Final = 120_000
"""How long a session is safe from larger ones, and how long an unused one is from any (2 minutes)."""
_LARGEST_ID = 0x7FFF_FFFF


@attrs.define(weakref_slot=False)
class CachedPartition:
    """A partition in a session: what is asked of it, and what was last answered."""

    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def note(self, answer: FetchedPartition) -> bool:
        """Remember an answer; whether there is anything in it that the follower does not know."""
        news = bool(
            answer.data
            or answer.error is not ErrorCode.NONE
            or answer.diverging_epoch is not None
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )
        # after an error everything is to be told again
        self.high_watermark = -1 if answer.error is not ErrorCode.NONE else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return news


@attrs.define(kw_only=True, eq=False)
class LeaderFetchSession:
    """A session; `epoch` is the one that its next request is to have.

    `privileged` ones are followers'. `partitions` are in the order in which they are read, what was served last at the
    end. Times are epoch ms. Source: org.apache.kafka.server.FetchSession.
    """

    id: int
    privileged: bool
    created_ms: int
    last_used_ms: int
    partitions: dict[TopicPartition, CachedPartition]
    epoch: int = 1
    was_old: bool = False
    """Whether it was older than `EVICTION_MS` when it was last used."""

    def update(self, wanted: Mapping[TopicPartition, FetchPartition], forgotten: Iterable[TopicPartition]) -> None:
        """Take what a request has changed."""
        for name, fetch in wanted.items():
            known = self.partitions.get(name)
            if known is None or known.wanted.topic_id != fetch.topic_id:
                self.partitions[name] = CachedPartition(fetch)
            else:
                known.wanted = fetch
        for name in forgotten:
            self.partitions.pop(name, None)

    def news(self, answers: Mapping[TopicPartition, FetchedPartition]) -> dict[TopicPartition, FetchedPartition]:
        """What of the answers has to be sent; who gets data goes to the end."""
        told: dict[TopicPartition, FetchedPartition] = {}
        for name, answer in answers.items():
            known = self.partitions.get(name)
            if known is None or not known.note(answer):
                continue
            told[name] = answer
            if answer.data:
                self.partitions[name] = self.partitions.pop(name)
        return told


class FetchSessionCache:
    """The sessions of a leader, `slots` at most (max.incremental.fetch.session.cache.slots).

    A full cache makes room for a new session by one that was not used for `EVICTION_MS`; else a follower's takes the
    place of a consumer's, or a larger one that of a smaller one that is older than that. `lock` guards everything,
    sessions too. Source: org.apache.kafka.server.FetchSessionCacheShard, of which Kafka has several for the sake of
    its lock.
    """

    def __init__(self, clock: Clock, slots: int, new_id: Callable[[], int] | None = None) -> None:
        self._clock = clock
        self._slots = slots
        random = SystemRandom()
        self._new_id = new_id or (lambda: random.randint(1, _LARGEST_ID))
        self._sessions: dict[int, LeaderFetchSession] = {}
        self.lock = RLock()
        self.evictions = 0
        """Sessions that had to make room (IncrementalFetchSessionEvictionsPerSec)."""

    def __len__(self) -> int:
        """How many there are (NumIncrementalFetchSessions)."""
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The partitions of all of them (NumIncrementalFetchPartitionsCached)."""
        with self.lock:
            return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, session_id: int) -> LeaderFetchSession | None:
        """A session by its id."""
        return self._sessions.get(session_id)

    def create(self, *, privileged: bool, partitions: dict[TopicPartition, CachedPartition]) -> int:
        """Begin a session and give its id, or `NO_SESSION` where there is no room for it."""
        now = self._clock.milliseconds()
        with self.lock:
            if len(self._sessions) >= self._slots and not self._make_room(privileged, len(partitions), now):
                return NO_SESSION
            id_ = self._new_id()
            while id_ in self._sessions or id_ == NO_SESSION:
                id_ = self._new_id()
            self._sessions[id_] = LeaderFetchSession(
                id=id_, privileged=privileged, created_ms=now, last_used_ms=now, partitions=partitions
            )
            return id_

    def touch(self, session: LeaderFetchSession) -> None:
        """The session is used."""
        session.last_used_ms = self._clock.milliseconds()
        session.was_old = session.last_used_ms - session.created_ms > EVICTION_MS

    def remove(self, session_id: int) -> None:
        """End a session, if there is one of that id."""
        with self.lock:
            self._sessions.pop(session_id, None)

    def _make_room(self, privileged: bool, size: int, now_ms: int) -> bool:
        if not self._sessions:
            return False
        victim = min(self._sessions.values(), key=lambda session: (session.last_used_ms, session.id))
        if now_ms - victim.last_used_ms <= EVICTION_MS:
            evictable = [s for s in self._sessions.values() if s.was_old or (privileged and not s.privileged)]
            if not evictable:
                return False
            victim = min(evictable, key=_value)
            if (privileged, size, 0) < _value(victim):
                return False
        del self._sessions[victim.id]
        self.evictions += 1
        return True


def _value(session: LeaderFetchSession) -> tuple[bool, int, int]:
    """The least one has to go first."""
    return session.privileged, len(session.partitions), session.id
