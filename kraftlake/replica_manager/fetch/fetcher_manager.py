"""Which fetcher fetches what: one for each leader and fetcher id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from threading import RLock
from time import monotonic
from typing import Final

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, Fetcher, FetcherFactory, InitialFetchState
from kraftlake.replica_manager.transitions import FetcherName, Transition, TransitionKind, TransitionListener
from kraftlake.runtime.log import get_logger

_log = get_logger(__name__)

LONGEST_JOIN_S: Final = 30.0
"""How long `close` waits for all threads together."""


class FetcherManager:
    """Fetchers by (leader's id, fetcher id). A fetcher is reused only while the leader's address is the same.

    `failed_partitions` are those that could not be fetched; a partition leaves it when it is added or removed. Fetchers
    that are no longer needed end by themselves: only `close` waits for their threads, without the lock.
    Source: kafka.server.AbstractFetcherManager.
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
        """Those that run, by (leader's id, fetcher id)."""
        with self._lock:
            return dict(self._fetchers)

    def fetcher_id(self, partition: TopicPartition) -> int:
        """Which of a leader's fetchers fetches the partition."""
        number = 31 * java_hash(partition.topic) + partition.partition
        return (number & 0x7FFF_FFFF) % self._fetchers_per_broker

    def add_fetcher_for_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Fetch these; fetchers that are missing are started."""
        with self._lock:
            by_fetcher: dict[tuple[BrokerEndPoint, int], dict[TopicPartition, InitialFetchState]] = {}
            for partition, state in states.items():
                by_fetcher.setdefault((state.leader, self.fetcher_id(partition)), {})[partition] = state
            for (leader, fetcher_id), group in by_fetcher.items():
                fetcher = self._fetcher_of(leader, fetcher_id)
                self.failed_partitions.difference_update(group)
                fetcher.add_partitions(group)
                if self._listener is not None:
                    name = _name((leader.id, fetcher_id), leader)
                    for partition, state in group.items():
                        self._listener(
                            Transition(
                                kind=TransitionKind.FETCHING_STARTED,
                                partition=partition,
                                topic_id=state.topic_id,
                                fetcher=name,
                                offset=state.offset,
                            )
                        )

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
        self._tell(TransitionKind.FETCHER_STARTED, key, leader)
        return fetcher

    def add_failed_partition(self, partition: TopicPartition) -> None:
        """Note that a partition can't be fetched. Takes no lock: a fetcher that holds its own calls this."""
        self.failed_partitions.add(partition)

    def remove_fetcher_for_partitions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Fetch these no longer; gives where each of those that were fetched is. Fetchers go on, idle ones too."""
        wanted = list(partitions)
        positions: dict[TopicPartition, int] = {}
        with self._lock:
            for key, fetcher in self._fetchers.items():
                removed = fetcher.remove_partitions(wanted)
                positions.update(removed)
                if self._listener is not None and removed:
                    self._tell_removed(removed, key, fetcher.leader)
            self.failed_partitions.difference_update(wanted)
        return positions

    def shutdown_idle_fetchers(self) -> None:
        """End those that have nothing to fetch."""
        with self._lock:
            idle = [key for key, fetcher in self._fetchers.items() if fetcher.partition_count <= 0]
            for key in idle:
                self._end(key, "it has nothing to fetch any more")

    def fetcher_of(self, leader_id: int, partition: TopicPartition) -> Fetcher | None:
        """The fetcher that fetches a partition from a leader, if there is one."""
        with self._lock:
            return self._fetchers.get((leader_id, self.fetcher_id(partition)))

    def resize(self, fetchers: int) -> None:
        """Have another number of fetchers for each leader; every partition goes to the one that its hash names now."""
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
        """End all, and wait `timeout_s` at most until nothing of them runs; what still does is logged and given."""
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
        except Exception as fault:  # one that can't be ended keeps no other from its own
            _log.error("fetcher_not_shut_down", leader=key[0], fetcher=key[1], cause=f"{type(fault).__name__}: {fault}")
        self._ending = [one for one in (*self._ending, fetcher) if not one.await_shutdown(0)]
        self._tell(TransitionKind.FETCHER_STOPPED, key, fetcher.leader, reason)

    def _tell(self, kind: TransitionKind, key: tuple[int, int], leader: BrokerEndPoint, reason: str = "") -> None:
        if self._listener is not None:
            self._listener(Transition(kind=kind, fetcher=_name(key, leader), reason=reason))

    def _tell_removed(self, removed: Iterable[TopicPartition], key: tuple[int, int], leader: BrokerEndPoint) -> None:
        assert self._listener is not None
        name = _name(key, leader)
        for partition in removed:
            self._listener(Transition(kind=TransitionKind.FETCHING_STOPPED, partition=partition, fetcher=name))


def _name(key: tuple[int, int], leader: BrokerEndPoint) -> FetcherName:
    return FetcherName(fetcher_id=key[1], leader_id=leader.id, host=leader.host, port=leader.port)


@lru_cache(maxsize=65_536)
def java_hash(text: str) -> int:
    """String.hashCode: of UTF-16 units, as a Java int."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for place in range(0, len(units), 2):
        value = (31 * value + (units[place] << 8 | units[place + 1])) & 0xFFFF_FFFF
    return value - 0x1_0000_0000 if value >= 0x8000_0000 else value
