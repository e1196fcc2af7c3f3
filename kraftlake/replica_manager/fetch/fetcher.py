"""The interface of fetchers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

import attrs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.records.uuid import Uuid


class BrokerEndPoint(NamedTuple):
    """The address of a leader."""

    id: int
    host: str
    port: int


@attrs.frozen(kw_only=True, weakref_slot=False)
class InitialFetchState:
    """The offset at which the fetch of a partition starts, and the leader to fetch from."""

    topic_id: Uuid | None
    leader: BrokerEndPoint
    current_leader_epoch: int
    offset: int


@attrs.frozen(kw_only=True)
class FetcherFigures:
    """The counters of a fetcher since its start, and the lags of its partitions (in records) that are known.

    `name` is the name of the fetcher's thread. Source: kafka.server.FetcherStats, FetcherLagStats.
    """

    name: str
    requests: int = 0
    bytes: int = 0
    lags: Mapping[TopicPartition, int] = attrs.field(factory=dict)


class Fetcher(Protocol):
    """Fetches partitions from one leader. Source: kafka.server.AbstractFetcherThread."""

    @property
    def leader(self) -> BrokerEndPoint:
        """The leader to fetch from."""

    @property
    def partition_count(self) -> int:
        """The number of partitions."""

    def figures(self) -> FetcherFigures:
        """The counters and lags for metrics."""

    def start(self) -> None:
        """Start; called once, before the first partition is added."""

    def shutdown(self) -> None:
        """End without waiting: after this call the fetcher has no partitions and touches no log."""

    def await_shutdown(self, timeout_s: float) -> bool:
        """Wait after `shutdown` until the fetcher's thread has ended; False if it still runs."""

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Fetch these partitions too; a partition that is fetched at the same leader epoch keeps its state."""

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Stop fetching these partitions; returns the fetch offsets of those that were fetched."""

    def remove_all_partitions(self) -> Mapping[TopicPartition, InitialFetchState]:
        """Stop fetching all partitions; returns the states at which another fetcher of the same leader continues."""

    def mark_for_truncation(self, name: TopicPartition, offset: int) -> None:
        """Truncate a partition to `offset`, or to its fetch offset if that is lower, before the next fetch."""


FetcherFactory: TypeAlias = Callable[[int, BrokerEndPoint], Fetcher]
"""Returns a new fetcher of a leader, not started; its id distinguishes the fetchers of one leader."""
