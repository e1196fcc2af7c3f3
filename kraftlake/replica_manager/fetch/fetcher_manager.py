"""Assigns partitions to fetchers: one for each leader and fetcher id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from threading import RLock
from time import monotonic
from typing import Final

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, Fetcher, FetcherFactory, InitialFetchState
from kraftlake.replica_manager.transitions import FetcherName, Transition, TransitionKind, TransitionListener
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

LONGEST_JOIN_S: Final = 30.0
"""The maximum time that `close` waits for all threads together."""


class FetcherManager:
    """Fetchers by (leader id, fetcher id), each for one address of its leader.

    `failed_partitions` are the partitions that could not be fetched; adding or removing a partition clears its entry.
    Only `close` waits for the threads of ended fetchers, without the lock. Source: kafka.server.AbstractFetcherManager.
    """

    def __init__(self, factory: FetcherFactory, fetchers: int, listener: TransitionListener | None = None) -> None:
        self._factory = factory
        self._fetchers_per_broker = fetchers
        self._listener = listener
        self._lock = RLock()
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._ending: list[Fetcher] = []
        self.failed_partitions: set[TopicPartition] = set()

    def fetchers(self) -> dict[tuple[int, int], Fetcher]:
        """A copy of the running fetchers by (leader id, fetcher id)."""
        with self._lock:
            return dict(self._fetchers)

    def fetcher_id(self, partition: TopicPartition) -> int:
        """The id of the fetcher that fetches a partition."""
        number = 31 * java_hash(partition.topic) + partition.partition
        return (number & 0x7FFF_FFFF) % self._fetchers_per_broker

    def add_fetcher_for_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Fetch these partitions; missing fetchers are started."""
        with self._lock:
            by_fetcher: dict[tuple[BrokerEndPoint, int], dict[TopicPartition, InitialFetchState]] = {}
            for partition, state in states.items():
                by_fetcher.setdefault((state.leader, self.fetcher_id(partition)), {})[partition] = state
            for (leader, fetcher_id), group in by_fetcher.items():
                fetcher = self._fetcher_of(leader, fetcher_id)
                self.failed_partitions.difference_update(group)
                fetcher.add_partitions(group)
                self._report_started(group, _name(leader, fetcher_id))

    def _fetcher_of(self, leader: BrokerEndPoint, fetcher_id: int) -> Fetcher:
        key = (leader.id, fetcher_id)
        fetcher = self._fetchers.get(key)
        if fetcher is not None and fetcher.leader == leader:
            return fetcher
        if fetcher is not None:
            self._end(key, "the leader has another address now")
        fetcher = self._factory(fetcher_id, leader)
        fetcher.start()
        self._fetchers[key] = fetcher
        self._report(Transition(kind=TransitionKind.FETCHER_STARTED, fetcher=_name(leader, fetcher_id)))
        return fetcher

    def add_failed_partition(self, partition: TopicPartition) -> None:
        """Note that a partition can't be fetched. Takes no lock: fetchers call this with their own lock held."""
        self.failed_partitions.add(partition)

    def remove_fetcher_for_partitions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Stop fetching these partitions; returns the fetch offsets of those that were fetched. Ends no fetcher."""
        wanted = list(partitions)
        positions: dict[TopicPartition, int] = {}
        with self._lock:
            for key, fetcher in self._fetchers.items():
                removed = fetcher.remove_partitions(wanted)
                positions.update(removed)
                self._report_stopped(removed, _name(fetcher.leader, key[1]))
            self.failed_partitions.difference_update(wanted)
        return positions

    def shutdown_idle_fetchers(self) -> None:
        """End the fetchers without partitions."""
        with self._lock:
            idle = [key for key, fetcher in self._fetchers.items() if fetcher.partition_count <= 0]
            for key in idle:
                self._end(key, "it has nothing to fetch any more")

    def fetcher_of(self, leader_id: int, partition: TopicPartition) -> Fetcher | None:
        """The fetcher for a partition and a leader, if it runs."""
        with self._lock:
            return self._fetchers.get((leader_id, self.fetcher_id(partition)))

    def resize(self, fetchers: int) -> None:
        """Change the number of fetchers for each leader, and reassign every partition."""
        with self._lock:
            if fetchers == self._fetchers_per_broker:
                return
            self._fetchers_per_broker = fetchers
            moved: dict[TopicPartition, InitialFetchState] = {}
            for key, fetcher in list(self._fetchers.items()):
                moved.update(fetcher.remove_all_partitions())
                if key[1] >= fetchers:
                    self._end(key, "there are fewer fetchers now")
            self.add_fetcher_for_partitions(moved)
            self.shutdown_idle_fetchers()

    def close(self, timeout_s: float = LONGEST_JOIN_S) -> list[str]:
        """End all fetchers and wait at most `timeout_s` for their threads; returns and logs those that still run."""
        with self._lock:
            for key in list(self._fetchers):
                self._end(key, "the broker shuts down")
            ending, self._ending = self._ending, []
        deadline = monotonic() + timeout_s
        alive = [
            fetcher.figures().name for fetcher in ending if not fetcher.await_shutdown(max(0.0, deadline - monotonic()))
        ]
        if alive:
            _log.error("fetchers_do_not_end", fetchers=alive, waited_s=timeout_s)
        return alive

    def _end(self, key: tuple[int, int], reason: str) -> None:
        fetcher = self._fetchers.pop(key)
        try:
            fetcher.shutdown()
        except Exception as fault:  # an error of one fetcher must not keep the others from ending
            _log.error("fetcher_not_shut_down", leader=key[0], fetcher=key[1], cause=f"{type(fault).__name__}: {fault}")
        self._ending = [one for one in (*self._ending, fetcher) if not one.await_shutdown(0)]
        name = _name(fetcher.leader, key[1])
        self._report(Transition(kind=TransitionKind.FETCHER_STOPPED, fetcher=name, reason=reason))

    def _report(self, transition: Transition) -> None:
        if self._listener is not None:
            self._listener(transition)

    def _report_started(self, states: Mapping[TopicPartition, InitialFetchState], fetcher: FetcherName) -> None:
        for partition, state in states.items() if self._listener is not None else ():
            kind = TransitionKind.FETCHING_STARTED
            self._report(
                Transition(
                    kind=kind, partition=partition, topic_id=state.topic_id, fetcher=fetcher, offset=state.offset
                )
            )

    def _report_stopped(self, partitions: Iterable[TopicPartition], fetcher: FetcherName) -> None:
        for partition in partitions if self._listener is not None else ():
            self._report(Transition(kind=TransitionKind.FETCHING_STOPPED, partition=partition, fetcher=fetcher))


def _name(leader: BrokerEndPoint, fetcher_id: int) -> FetcherName:
    return FetcherName(fetcher_id=fetcher_id, leader_id=leader.id, host=leader.host, port=leader.port)


@lru_cache(maxsize=65_536)
def java_hash(text: str) -> int:
    """Return Java's String.hashCode: of UTF-16 code units, as a signed 32-bit integer."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for place in range(0, len(units), 2):
        value = (31 * value + (units[place] << 8 | units[place + 1])) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value >= 0x8000_0000 else value
