"""Copies replicas to other log directories of this broker, and promotes each copy once it is caught up.

Source: kafka.server.ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicIdPartition, TopicPartition
from kraftlake.records.uuid import Uuid
from kraftlake.replica_manager.fetch.fetch_states import PartitionFetchState
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.fetch.leader_end_point import FetchedPartition, FetchRequest
from kraftlake.replica_manager.fetch.local_end_point import LocalEndPoint
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.logs.log_values import LogAppendInfo
from kraftlake.replica_manager.logs.partition_log import PartitionLog
from kraftlake.replica_manager.partition.leader import FUTURE_REPLICA, FetchPartition
from kraftlake.replica_manager.partition.partition import Partition
from kraftlake.replica_manager.partition.replica import NO_BROKER_EPOCH
from kraftlake.replica_manager.replication_quota import ReplicationQuota

if TYPE_CHECKING:
    from kraftlake.replica_manager.replica_manager import ReplicaManager


class Promotion(Enum):
    """The step of a future log on its way to replace the replica's log."""

    COPYING = "copying"
    QUEUED = "reported to the controller"
    ACCEPTED = "accepted by the controller"


@attrs.define(eq=False)
class Move:
    """The move of a replica to another log directory; `from_directory` is the id of its current directory."""

    topic_id: Uuid
    from_directory: Uuid | None
    promotion: Promotion = Promotion.COPYING


class LogDirFetcher(ReplicaFetcher):
    """Copies one replica at a time, in the order of their names, as fast as `quota` allows, without a fetch session.

    A future log that has caught up is reported to the controller (AssignReplicasToDirs). It replaces the replica's log
    once the controller has accepted the report and if it is still caught up. When a reported move is cancelled, the
    current directory is reported again.
    """

    into_future_logs = True

    def __init__(
        self, fetcher_id: int, here: BrokerEndPoint, manager: ReplicaManager, *, quota: ReplicationQuota | None = None
    ) -> None:
        super().__init__(fetcher_id, LocalEndPoint(manager, here), manager, quota=quota)
        self.name = f"ReplicaAlterLogDirsThread-{fetcher_id}"
        self._moves: dict[TopicPartition, Move] = {}
        self._in_progress: TopicPartition | None = None

    def moves(self) -> dict[TopicPartition, Promotion]:
        """The step of each move."""
        with self._lock:
            return {name: move.promotion for name, move in self._moves.items()}

    def do_work(self) -> bool:
        """Run one round; False if nothing was copied, so that the driver waits."""
        before = self.bytes
        return super().do_work() and self.bytes > before

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Move these replicas too, except those whose future log has already replaced the log."""
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
        """Stop moving these replicas; if a new directory was reported, report the current one to the controller."""
        names = list(partitions)
        with self._lock:
            for name in names:
                move = self._moves.pop(name, None)
                if move is None or move.promotion is Promotion.COPYING or move.from_directory is None:
                    continue
                self._manager.context.directory_events.handle_assignment(
                    TopicIdPartition(move.topic_id, name), move.from_directory, "the move was given up"
                )
            return super().remove_partitions(names)

    # copying

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
        params = attrs.evolve(
            request.params, replica_id=FUTURE_REPLICA, replica_epoch=NO_BROKER_EPOCH, max_wait_ms=0, min_bytes=0
        )
        return attrs.evolve(request, params=params)

    def _append_to_log(
        self, name: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition
    ) -> LogAppendInfo | None:
        info = super()._append_to_log(name, state, fetched)
        self._quota.record(len(fetched.data))
        self._maybe_promote(name, self._manager.partition_or_raise(name))
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
            self._manager.context.directory_events.handle_assignment(
                TopicIdPartition(move.topic_id, name),
                target,
                "the replica was moved there",
                lambda: self._accepted(name, move),
            )

    def _accepted(self, name: TopicPartition, move: Move) -> None:
        """Note that the controller has accepted the directory, unless another move of the partition has begun."""
        with self._lock:
            if self._moves.get(name) is move:
                move.promotion = Promotion.ACCEPTED

    def _directory_of(self, log: PartitionLog | None) -> Uuid | None:
        return None if log is None else self._manager.context.log_manager.directory_id(log.directory)
