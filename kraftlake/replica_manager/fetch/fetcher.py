"""What the replica manager needs of a fetcher, whatever drives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

import attrs

from kraftlake.delta import TopicPartition
from kraftlake.records.uuid import Uuid


class BrokerEndPoint(NamedTuple):
    """Where a leader is reached."""

    id: int
    host: str
    port: int


@attrs.frozen(kw_only=True, weakref_slot=False)
class InitialFetchState:
    """Where a fetcher begins: at `offset`, of the leader of `current_leader_epoch`."""

    topic_id: Uuid | None
    leader: BrokerEndPoint
    current_leader_epoch: int
    offset: int


@attrs.frozen(kw_only=True)
class FetcherFigures:
    """What a fetcher has done since it began, and how far the high watermarks of its partitions are ahead, as known.

    `name` is what its thread is called. Source: kafka.server.FetcherStats, FetcherLagStats.
    """

    name: str
    requests: int = 0
    bytes: int = 0
    lags: Mapping[TopicPartition, int] = attrs.field(factory=dict)


class Fetcher(Protocol):
    """Fetches partitions from one leader. Source: kafka.server.AbstractFetcherThread."""

    @property
    def leader(self) -> BrokerEndPoint:
        """Whom it fetches from."""

    @property
    def partition_count(self) -> int:
        """How many partitions it fetches."""

    def figures(self) -> FetcherFigures:
        """What it has done, and where it is, for metrics."""

    def start(self) -> None:
        """Begin; called once, before the first partition is added."""

    def shutdown(self) -> None:
        """End, without waiting for what runs: once this returns it has no partitions and touches no log."""

    def await_shutdown(self, timeout_s: float) -> bool:
        """Wait until nothing of it runs any more after `shutdown`; False where something still does."""

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Fetch these too; one that is fetched already at the same leader epoch goes on as it is."""

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Fetch these no longer; gives the offset that each of those it had is at."""

    def remove_all_partitions(self) -> Mapping[TopicPartition, InitialFetchState]:
        """Fetch nothing any more; gives where another fetcher of the same leader would go on."""

    def mark_for_truncation(self, name: TopicPartition, offset: int) -> None:
        """Truncate a partition to `offset`, or where it is if that is lower, before going on."""


class FetcherFactory(Protocol):
    """Makes fetchers."""

    def __call__(self, fetcher_id: int, leader: BrokerEndPoint) -> Fetcher:
        """A fetcher that has not begun; `fetcher_id` tells it from the others of that leader."""
