"""Where a fetcher is with its partitions, and in which order it asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from threading import RLock

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ReplicationError
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.fetch.fetcher_owner import FetcherOwner
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.runtime.clock import Clock


class ReplicaState(Enum):
    """What a fetcher does with a partition."""

    TRUNCATING = "truncating"
    FETCHING = "fetching"


@attrs.frozen(kw_only=True, weakref_slot=False)
class PartitionFetchState:
    """Where a fetcher is with a partition.

    `lag` is how far the leader's high watermark is ahead, None before the first answer; `ready_at_ns` the clock's
    reading from which on it may be fetched again. Source: org.apache.kafka.server.PartitionFetchState.
    """

    topic_id: Uuid | None
    fetch_offset: int
    lag: int | None = None
    current_leader_epoch: int
    state: ReplicaState
    last_fetched_epoch: int | None = None
    ready_at_ns: int = 0

    @property
    def is_truncating(self) -> bool:
        """Whether it is to be truncated before it is fetched, once it is ready."""
        return self.state is ReplicaState.TRUNCATING

    @property
    def is_in_sync(self) -> bool:
        """Whether it has all that is committed, as far as the last answer told."""
        return self.lag is not None and self.lag <= 0


class FetchStates:
    """The partitions of a fetcher, in the order in which they were served last, so that none starves.

    A partition that is delayed waits for `backoff_ms`. Source: org.apache.kafka.common.internals.PartitionStates.
    """

    def __init__(self, leader: BrokerEndPoint, owner: FetcherOwner, clock: Clock, backoff_ms: int) -> None:
        self.leader = leader
        """Whom it fetches from."""
        self._owner = owner
        self._clock = clock
        self._backoff_ns = backoff_ms * 1_000_000
        self._lock = RLock()
        self._states: dict[TopicPartition, PartitionFetchState] = {}

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        return len(self._states)

    def states(self) -> dict[TopicPartition, PartitionFetchState]:
        """Where it is, in the order in which partitions are asked for."""
        with self._lock:
            return dict(self._states)

    def lags(self) -> dict[TopicPartition, int]:
        """The metric ConsumerLag: how far each partition's high watermark is ahead, where that is known."""
        return {name: state.lag for name, state in self.states().items() if state.lag is not None}

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Fetch these; one that is here at the same leader epoch goes on as it is."""
        with self._lock:
            for name, initial in states.items():
                known = self._states.get(name)
                if known is None or known.current_leader_epoch != initial.current_leader_epoch:
                    known = self._begin(name, initial)
                self._move_to_end(name, known)

    def _begin(self, name: TopicPartition, initial: InitialFetchState) -> PartitionFetchState:
        # the leader's answers tell where we diverge, but only by epochs: a log without any goes to its high watermark
        epoch = self._log_of(name).latest_epoch
        return PartitionFetchState(
            topic_id=initial.topic_id,
            fetch_offset=initial.offset,
            current_leader_epoch=initial.current_leader_epoch,
            state=ReplicaState.TRUNCATING if epoch is None else ReplicaState.FETCHING,
            last_fetched_epoch=epoch,
        )

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Fetch these no longer."""
        with self._lock:
            mine = self._states
            return {name: mine.pop(name).fetch_offset for name in partitions if name in mine} if mine else {}

    def remove_all_partitions(self) -> Mapping[TopicPartition, InitialFetchState]:
        """Fetch nothing any more."""
        with self._lock:
            states, self._states = self._states, {}
        return {
            name: InitialFetchState(
                topic_id=state.topic_id,
                leader=self.leader,
                current_leader_epoch=state.current_leader_epoch,
                offset=state.fetch_offset,
            )
            for name, state in states.items()
        }

    def mark_for_truncation(self, name: TopicPartition, offset: int) -> None:
        """Truncate to `offset`, or where it is if that is lower, before going on."""
        with self._lock:
            state = self._states.get(name)
            if state is not None:
                self._move_to_end(
                    name,
                    attrs.evolve(
                        state,
                        fetch_offset=min(offset, state.fetch_offset),
                        state=ReplicaState.TRUNCATING,
                        last_fetched_epoch=None,
                    ),
                )

    def _delay(self, names: Iterable[TopicPartition]) -> None:
        now = self._clock.nanoseconds()
        ready = now + self._backoff_ns
        for name in list(names):
            state = self._states.get(name)
            if state is not None and state.ready_at_ns <= now:
                self._move_to_end(name, attrs.evolve(state, ready_at_ns=ready))

    def _move_to_end(self, name: TopicPartition, state: PartitionFetchState) -> None:
        self._states.pop(name, None)
        self._states[name] = state

    def _is_ready(self, state: PartitionFetchState, now_ns: int) -> bool:
        return state.state is ReplicaState.FETCHING and state.ready_at_ns <= now_ns

    def _log_of(self, name: TopicPartition) -> PartitionLog:
        return self._owner.partition_or_raise(name).local_log

    def _latest_epoch(self, name: TopicPartition) -> int | None:
        try:
            return self._log_of(name).latest_epoch
        except ReplicationError:
            return None
