"""The fetch states of the partitions of one fetcher, and the order in which it fetches them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from threading import RLock
from typing import TYPE_CHECKING

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ReplicationError
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.logs.partition_log import PartitionLog

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager


class ReplicaState(Enum):
    """The state of a partition in a fetcher."""

    TRUNCATING = "truncating"
    FETCHING = "fetching"


@attrs.frozen(kw_only=True, weakref_slot=False)
class PartitionFetchState:
    """The next offset to fetch of a partition, and the work required before.

    `lag` is the leader's high watermark minus `fetch_offset` (at least 0), None before the first answer. The partition
    is not fetched before the clock reads `ready_at_ns`. Source: org.apache.kafka.server.PartitionFetchState.
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
        """Whether the log has to be truncated before the next fetch."""
        return self.state is ReplicaState.TRUNCATING

    @property
    def is_in_sync(self) -> bool:
        """Whether the log has all committed records, by the last answer."""
        return self.lag is not None and self.lag <= 0


class FetchStates:
    """The partitions of a fetcher; the last one served is at the end, so that none starves.

    A partition that fails is delayed by `replica.fetch.backoff.ms`. Source:
    org.apache.kafka.common.internals.PartitionStates.
    """

    into_future_logs = False
    """Whether the fetcher writes the future logs of the partitions instead of their logs."""

    def __init__(self, leader: BrokerEndPoint, manager: ReplicaManager) -> None:
        self.leader = leader
        self._manager = manager
        self._clock = manager.context.clock
        self._backoff_ns = manager.context.config.replica_fetch_backoff_ms * 1_000_000
        self._lock = RLock()
        self._states: dict[TopicPartition, PartitionFetchState] = {}

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        return len(self._states)

    def states(self) -> dict[TopicPartition, PartitionFetchState]:
        """A copy of all states, in the order in which partitions are fetched."""
        with self._lock:
            return dict(self._states)

    def lags(self) -> dict[TopicPartition, int]:
        """The metric ConsumerLag: the lag of each partition whose lag is known."""
        return {name: state.lag for name, state in self.states().items() if state.lag is not None}

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Fetch these partitions too; a partition that is fetched at the same leader epoch keeps its state."""
        with self._lock:
            for name, initial in states.items():
                known = self._states.get(name)
                if known is None or known.current_leader_epoch != initial.current_leader_epoch:
                    known = self._begin(name, initial)
                self._move_to_end(name, known)

    def _begin(self, name: TopicPartition, initial: InitialFetchState) -> PartitionFetchState:
        # A leader's answer names a divergence by epochs: a log without epochs is truncated to its high watermark. The
        # replica may have been truncated while its future log was not copied: the epochs have to be compared first.
        epoch = None if self.into_future_logs else self._log_of(name).latest_epoch
        return PartitionFetchState(
            topic_id=initial.topic_id,
            fetch_offset=initial.offset,
            current_leader_epoch=initial.current_leader_epoch,
            state=ReplicaState.TRUNCATING if epoch is None else ReplicaState.FETCHING,
            last_fetched_epoch=epoch,
        )

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Stop fetching these partitions; returns the fetch offsets of those that were fetched."""
        with self._lock:
            mine = self._states
            return {name: mine.pop(name).fetch_offset for name in partitions if name in mine} if mine else {}

    def remove_all_partitions(self) -> Mapping[TopicPartition, InitialFetchState]:
        """Stop fetching all partitions; returns the states at which another fetcher of the same leader continues."""
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
        """Truncate a partition to `offset`, or to its fetch offset if that is lower, before the next fetch."""
        with self._lock:
            state = self._states.get(name)
            if state is not None:
                offset = min(offset, state.fetch_offset)
                truncating = ReplicaState.TRUNCATING
                marked = attrs.evolve(state, fetch_offset=offset, state=truncating, last_fetched_epoch=None)
                self._move_to_end(name, marked)

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
        partition = self._manager.partition_or_raise(name)
        if not self.into_future_logs:
            return partition.local_log
        if partition.future_log is None:
            raise ReplicationError(f"{name} is not being moved to another directory.")
        return partition.future_log

    def _latest_epoch(self, name: TopicPartition) -> int | None:
        try:
            return self._log_of(name).latest_epoch
        except ReplicationError:
            return None
