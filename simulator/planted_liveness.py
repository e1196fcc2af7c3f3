"""Faults planted into production code that keep a cluster from becoming whole again, one a property of liveness."""

from __future__ import annotations

from typing import Any

from kraftlake.controller.cluster.heartbeats import BrokerControlState, BrokerHeartbeats
from kraftlake.controller.replication import partition_change
from kraftlake.replay.loader.lake_feed import LakeFeed
from kraftlake.replica_manager.alter_partition_manager import BatchingAlterPartitionManager
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.replica_manager.lifecycle.broker_lifecycle import BrokerLifecycle, LifecycleState
from kraftlake.replica_manager.requests.delayed_answers import DelayedAnswers, DelayedProduce
from simulator.planted_fault import Change, PlantedFault
from simulator.scheduler import SECOND
from simulator.specification import (
    ALTER_PARTITION_REACHED_OR_ZERO,
    EVENTUALLY_ANSWERED,
    EVENTUALLY_METADATA_CONVERGES,
    EVENTUALLY_REASSIGNMENT_COMPLETES,
    EVENTUALLY_REPLICATED,
    EVENTUALLY_RUNS,
    EVENTUALLY_UNFENCED,
)

_LONG_NS = 60 * SECOND
"""Twice the time between no-op records."""


def _unfenced_unnoticed() -> list[Change]:
    after, first = BrokerLifecycle._after_heartbeat, dict[int, BrokerLifecycle]()

    def after_first(self: BrokerLifecycle, response: Any) -> int:
        is_first = first.setdefault(self._registration.broker_id, self) is self
        if is_first or self.state is not LifecycleState.RECOVERY:
            return after(self, response)
        return self.config.broker_heartbeat_interval_ms

    return [(BrokerLifecycle, "_after_heartbeat", after_first)]


def _unfenced_once() -> list[Change]:
    next_state, unfenced = BrokerHeartbeats.next_state, set[tuple[int, int]]()

    def next_but_again(self: BrokerHeartbeats, broker_id: int, *, registration_offset: int, **more: Any) -> Any:
        now, then = next_state(self, broker_id, registration_offset=registration_offset, **more)
        if now is BrokerControlState.FENCED and then is BrokerControlState.UNFENCED:
            if (broker_id, registration_offset) in unfenced:
                return now, now
            unfenced.add((broker_id, registration_offset))
        return now, then

    return [(BrokerHeartbeats, "next_state", next_but_again)]


def _silence_ends_following() -> list[Change]:
    read = LakeFeed._read

    def read_after_news(self: LakeFeed) -> None:
        if not self._changed_ns or self._clock.nanoseconds() - self._changed_ns < _LONG_NS:
            read(self)

    return [(LakeFeed, "_read", read_after_news)]


def _unread_lake_given_up() -> list[Change]:
    return [(LakeFeed, "_try_again", lambda self, error: None)]


def _later_proposals_not_sent() -> list[Change]:
    manager, answering = BatchingAlterPartitionManager, set[int]()
    answered, send = manager._answered, manager.send

    def answered_only(self: BatchingAlterPartitionManager, *arguments: Any) -> None:
        answering.add(id(self))
        try:
            answered(self, *arguments)
        finally:
            answering.discard(id(self))

    def send_first(self: BatchingAlterPartitionManager) -> None:
        if id(self) not in answering:
            send(self)

    return [(manager, "_answered", answered_only), (manager, "send", send_first)]


def _unanswered_when_it_waits() -> list[Change]:
    complete = DelayedAnswers.on_complete

    def complete_at_once(self: Any) -> None:
        if self.watcher is None or not isinstance(self, DelayedProduce):
            complete(self)

    return [(DelayedAnswers, "on_complete", complete_at_once)]


def _fetcher_gives_up() -> list[Change]:
    fail = ReplicaFetcher.handle_failure

    def fail_for_ever(self: ReplicaFetcher, error: Exception) -> None:
        fail(self, error)
        self.remove_all_partitions()

    return [(ReplicaFetcher, "handle_failure", fail_for_ever)]


def _reassignment_never_complete() -> list[Change]:
    return [(partition_change._Change, "_complete_reassignment", lambda self: None)]


FAULTS = {
    "unfenced-unnoticed": PlantedFault(
        "a broker that has started again does not notice that it is in service", _unfenced_unnoticed,
        breaks=EVENTUALLY_RUNS, seed=3, hours=0.3,
    ),
    "unfenced-once": PlantedFault(
        "a broker that was fenced stays so", _unfenced_once, breaks=EVENTUALLY_UNFENCED, hours=0.3, seed=3
    ),
    "silence-ends-following": PlantedFault(
        "a node follows the metadata log as long as there is news", _silence_ends_following,
        breaks=EVENTUALLY_METADATA_CONVERGES, hours=0.3, seed=4,
    ),
    "unread-lake-given-up": PlantedFault(
        "a broker that could not read the lake once reads it no more", _unread_lake_given_up,
        breaks=EVENTUALLY_METADATA_CONVERGES, hours=0.5, seed=7,
    ),
    "later-proposals-not-sent": PlantedFault(
        "a leader sends no proposal that comes while an earlier one is not answered", _later_proposals_not_sent,
        breaks=ALTER_PARTITION_REACHED_OR_ZERO, hours=0.5,
    ),
    "unanswered-when-it-waits": PlantedFault(
        "a write that had to wait for replicas has no answer", _unanswered_when_it_waits,
        breaks=EVENTUALLY_ANSWERED, hours=0.3,
    ),
    "fetcher-gives-up": PlantedFault(
        "a follower that can't reach its leader does not try again", _fetcher_gives_up,
        breaks=EVENTUALLY_REPLICATED, hours=0.3, seed=3,
    ),
    "reassignment-never-complete": PlantedFault(
        "a reassignment has no end", _reassignment_never_complete,
        breaks=EVENTUALLY_REASSIGNMENT_COMPLETES, hours=0.3, seed=35,
    ),
}  # fmt: skip
"""They are found at the end of a history, so that its hour is a short one."""
