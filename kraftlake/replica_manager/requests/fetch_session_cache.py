"""The leader's side of fetch sessions: the partitions of each session and their last sent state (KIP-227)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from random import SystemRandom
from threading import RLock
from typing import Final

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.protocol.error_code import ErrorCode
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.fetch.fetch_session import NO_SESSION
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition
from kraftlake.replica_manager.partition.leader import FetchPartition
from kraftlake.runtime.clock import Clock

EVICTION_MS: Final = 120_000
"""The age from which a larger session may replace a session, and the idle time after which any session may."""
_LARGEST_ID = 0x7FFF_FFFF


@attrs.define(weakref_slot=False)
class CachedPartition:
    """A partition in a session: its fetch parameters and the offsets last sent."""

    wanted: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1

    def note(self, answer: FetchedPartition) -> bool:
        """Store an answer; returns whether it has news for the follower."""
        news = bool(
            answer.data
            or answer.error is not ErrorCode.NONE
            or answer.diverging_epoch is not None
            or answer.preferred_read_replica is not None
            or answer.high_watermark != self.high_watermark
            or answer.log_start_offset != self.log_start_offset
        )
        # after an error the next answer is sent in any case
        self.high_watermark = -1 if answer.error is not ErrorCode.NONE else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return news


@attrs.define(kw_only=True, eq=False)
class LeaderFetchSession:
    """A session; `epoch` is the session epoch that its next request must have.

    Sessions of followers are `privileged`. `partitions` are in reading order, the last one served at the end. Times are
    epoch ms. Source: org.apache.kafka.server.FetchSession.
    """

    id: int
    privileged: bool
    created_ms: int
    last_used_ms: int
    partitions: dict[TopicPartition, CachedPartition]
    epoch: int = 1
    was_old: bool = False
    """Whether the session was older than `EVICTION_MS` when it was last used."""

    def update(
        self,
        wanted: Mapping[TopicPartition, FetchPartition],
        forgotten: Iterable[TopicPartition],
        forgotten_ids: Collection[tuple[Uuid, int]] = (),
    ) -> None:
        """Apply the changes of a request; see `FetchRequest`."""
        for name, fetch in wanted.items():
            known = self.partitions.get(name)
            if known is None or known.wanted.topic_id != fetch.topic_id:
                self.partitions[name] = CachedPartition(fetch)
            else:
                known.wanted = fetch
        for name in forgotten:
            self.partitions.pop(name, None)
        if forgotten_ids:
            gone = [n for n, one in self.partitions.items() if (one.wanted.topic_id, n.partition) in forgotten_ids]
            for name in gone:
                del self.partitions[name]

    def news(self, answers: Mapping[TopicPartition, FetchedPartition]) -> dict[TopicPartition, FetchedPartition]:
        """The answers that have to be sent; partitions with data move to the end."""
        to_send: dict[TopicPartition, FetchedPartition] = {}
        for name, answer in answers.items():
            known = self.partitions.get(name)
            if known is None or not known.note(answer):
                continue
            to_send[name] = answer
            if answer.data:
                self.partitions[name] = self.partitions.pop(name)
        return to_send


class FetchSessionCache:
    """The sessions of a leader, at most `slots` (max.incremental.fetch.session.cache.slots).

    In a full cache, a new session replaces one unused for `EVICTION_MS`; else a follower's session replaces a
    consumer's, or a larger session a smaller one older than `EVICTION_MS`. `lock` guards the cache and its sessions.
    Source: org.apache.kafka.server.FetchSessionCacheShard, of which Kafka has several to share the load of the lock.
    """

    def __init__(self, clock: Clock, slots: int, new_id: Callable[[], int] | None = None) -> None:
        self._clock = clock
        self._slots = slots
        random = SystemRandom()
        self._new_id = new_id or (lambda: random.randint(1, _LARGEST_ID))
        self._sessions: dict[int, LeaderFetchSession] = {}
        self.lock = RLock()
        self.evictions = 0
        """The number of replaced sessions (IncrementalFetchSessionEvictionsPerSec)."""

    def __len__(self) -> int:
        """The number of sessions (NumIncrementalFetchSessions)."""
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """The number of partitions of all sessions (NumIncrementalFetchPartitionsCached)."""
        with self.lock:
            return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, session_id: int) -> LeaderFetchSession | None:
        """A session by its id."""
        return self._sessions.get(session_id)

    def create(self, *, privileged: bool, partitions: dict[TopicPartition, CachedPartition]) -> int:
        """Start a session; returns its id, or `NO_SESSION` if the cache has no room."""
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
        """Note that a session is used now."""
        session.last_used_ms = self._clock.milliseconds()
        session.was_old = session.last_used_ms - session.created_ms > EVICTION_MS

    def remove(self, session_id: int) -> None:
        """End a session, if it exists."""
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
    """The key of a session for the order of replacement, the smallest first."""
    return session.privileged, len(session.partitions), session.id
