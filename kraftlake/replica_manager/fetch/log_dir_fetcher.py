"""A fetcher that moves replicas to other directories of the broker: it copies them there and has them take the place.

Source: kafka.server.ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from kraftlake.delta import TopicIdPartition, TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.errors import ReplicationError
from kraftlake.replica_manager.fetch.fetch_states import PartitionFetchState, ReplicaState
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest
from kraftlake.replica_manager.fetch.local_end_point import LocalEndPoint
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.logs.partition_log import LogAppendInfo, PartitionLog
from kraftlake.replica_manager.partition.follower import (
    append_records_to_follower,
    truncate_fully_and_start_at,
    truncate_to,
)
from kraftlake.replica_manager.partition.leader import FUTURE_REPLICA, FetchPartition
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.replication_quota import ReplicaQuota

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager


class Promotion(Enum):
    """How far a copy is with taking its replica's place."""

    COPYING = "copying"
    QUEUED = "told to the controller"
    ACCEPTED = "accepted by the controller"


@attrs.define(eq=False)
class Move:
    """A replica on its way: where it lies, by id, and how far its copy is."""

    topic_id: Uuid
    from_directory: Uuid | None
    promotion: Promotion = Promotion.COPYING


class MovedReplicas:
    """The `FetcherOwner` of fetchers that move replicas: nobody waits for a copy, and it has no copy of its own."""

    def __init__(self, manager: ReplicaManager) -> None:
        self._manager = manager

    def partition_or_raise(self, topic_partition: TopicPartition) -> Partition:
        """The partition."""
        return self._manager.partition_or_raise(topic_partition)

    def add_failed_partition(self, topic_partition: TopicPartition) -> None:
        """It can't be moved until metadata changes it."""
        self._manager.log_dir_fetchers.add_failed_partition(topic_partition)

    def complete_delayed_fetches(self, partitions: Iterable[TopicPartition]) -> None:
        """Nobody waits for a copy."""

    def mark_future_for_truncation(self, topic_partition: TopicPartition, offset: int) -> None:
        """A copy has none."""


class LogDirFetcher(ReplicaFetcher):
    """Copies one replica at a time, in the order of their names, as fast as `quota` allows, and without a session.

    A copy that has caught up is told to the controller (AssignReplicasToDirs), and takes the replica's place once the
    controller has accepted that and it is caught up still. A move that is given up in between is taken back there. A
    round that copies nothing says so, for the driver to wait.
    """

    def __init__(
        self, fetcher_id: int, here: BrokerEndPoint, manager: ReplicaManager, *, quota: ReplicaQuota | None = None
    ) -> None:
        super().__init__(
            fetcher_id,
            LocalEndPoint(manager, here),
            MovedReplicas(manager),
            broker_id=FUTURE_REPLICA,
            broker_epoch=lambda: -1,
            config=manager.config,
            clock=manager.context.clock,
            quota=quota,
        )
        self.name = f"ReplicaAlterLogDirsThread-{fetcher_id}"
        self._manager = manager
        self._moves: dict[TopicPartition, Move] = {}
        self._in_progress: TopicPartition | None = None

    def moves(self) -> dict[TopicPartition, Promotion]:
        """What is on its way, and how far."""
        with self._lock:
            return {name: move.promotion for name, move in self._moves.items()}

    def do_work(self) -> bool:
        """One round; False when nothing was copied."""
        before = self.bytes
        return super().do_work() and self.bytes > before

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Move these too, if their copies are not in place already."""
        with self._lock:
            moving: dict[TopicPartition, InitialFetchState] = {}
            for name, state in states.items():
                partition = self._manager.partition_or_raise(name)
                if partition.future_log is None:
                    continue
                moving[name] = state
                known = self._states.get(name)
                if known is None or known.current_leader_epoch != state.current_leader_epoch:
                    self._moves[name] = Move(partition.topic_id, self._directory_of(partition.log))
            super().add_partitions(moving)

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Move these no longer; the controller is told of those that it believes to be moved."""
        names = list(partitions)
        with self._lock:
            for name in names:
                move = self._moves.pop(name, None)
                if move is None or move.promotion is Promotion.COPYING or move.from_directory is None:
                    continue
                self._manager.directory_events.handle_assignment(
                    TopicIdPartition(move.topic_id, name), move.from_directory, "the move was given up"
                )
            return super().remove_partitions(names)

    # copying

    def _begin(self, name: TopicPartition, initial: InitialFetchState) -> PartitionFetchState:  # noqa: ARG002
        # the copy may have missed what the replica has truncated while it was not here: epochs tell
        return PartitionFetchState(
            topic_id=initial.topic_id,
            fetch_offset=initial.offset,
            current_leader_epoch=initial.current_leader_epoch,
            state=ReplicaState.TRUNCATING,
        )

    def _select(self, now_ns: int) -> list[tuple[TopicPartition, PartitionFetchState]]:
        if self._quota.is_exceeded():
            return []
        ready = [name for name, state in self._states.items() if self._is_ready(state, now_ns)]
        if self._in_progress not in ready:
            self._in_progress = min(ready, default=None)
        name = self._in_progress
        return [] if name is None else [(name, self._states[name])]

    def _request(
        self, partitions: Mapping[TopicPartition, FetchPartition], forgotten: tuple[TopicPartition, ...]
    ) -> FetchRequest | None:
        request = super()._request(partitions, forgotten)
        if request is None or not partitions:
            return None
        without = {name: attrs.evolve(fetch, last_fetched_epoch=None) for name, fetch in partitions.items()}
        return attrs.evolve(request, max_wait_ms=0, min_bytes=0, partitions=without)

    def _append_to_log(
        self, name: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition
    ) -> LogAppendInfo | None:
        partition = self._owner.partition_or_raise(name)
        with partition.lock:
            log = self._log_of(name)
            if state.fetch_offset != log.log_end_offset:
                raise ValueError(f"copied offset {state.fetch_offset}, but the copy ends at {log.log_end_offset}")
            info = append_records_to_follower(partition, fetched.data, state.current_leader_epoch, is_future=True)
            log.update_high_watermark(fetched.high_watermark)
            if fetched.log_start_offset > log.log_start_offset:
                log.maybe_increment_log_start_offset(min(fetched.log_start_offset, log.high_watermark))
        self._quota.record(len(fetched.data))
        self._maybe_promote(name, partition)
        return info

    def _maybe_promote(self, name: TopicPartition, partition: Partition) -> None:
        move = self._moves[name]
        if move.promotion is Promotion.ACCEPTED:
            if partition.maybe_replace_current_with_future():
                del self._moves[name]
                self.remove_partitions([name])
        elif move.promotion is Promotion.COPYING:
            with partition.lock:
                target = self._directory_of(partition.future_log)
                if target is None or not partition.is_future_caught_up:
                    return
                move.promotion = Promotion.QUEUED
            self._manager.directory_events.handle_assignment(
                TopicIdPartition(move.topic_id, name),
                target,
                "the replica was moved there",
                lambda: self._accepted(name, move),
            )

    def _accepted(self, name: TopicPartition, move: Move) -> None:
        """The controller has noted the directory: another move of the partition may have begun meanwhile."""
        with self._lock:
            if self._moves.get(name) is move:
                move.promotion = Promotion.ACCEPTED

    def _truncate(self, name: TopicPartition, offset: int) -> None:
        truncate_to(self._owner.partition_or_raise(name), offset, is_future=True)

    def _truncate_fully(self, name: TopicPartition, offset: int) -> None:
        truncate_fully_and_start_at(self._owner.partition_or_raise(name), offset, is_future=True)

    def _log_of(self, name: TopicPartition) -> PartitionLog:
        future = self._owner.partition_or_raise(name).future_log
        if future is None:
            raise ReplicationError(f"{name} is not being moved to another directory.")
        return future

    def _directory_of(self, log: PartitionLog | None) -> Uuid | None:
        return None if log is None else self._manager.log_manager.directory_id(log.directory)
