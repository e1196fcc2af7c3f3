"""Drives a fetcher in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Event, Thread, current_thread

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, FetcherFigures, InitialFetchState
from kraftlake.replica_manager.fetch.replica_fetcher import ReplicaFetcher
from kraftlake.runtime.fault_handler import FaultHandler


class ReplicaFetcherThread:
    """A `Fetcher` whose thread runs rounds from `start` to `shutdown`. Source: kafka.server.ReplicaFetcherThread.

    After a round without work the thread waits `backoff_ms`, or until a partition is added. An unexpected error goes to
    the fault handler, and the next round follows. `shutdown` aborts the current round and does not wait for the thread.
    """

    def __init__(self, fetcher: ReplicaFetcher, *, backoff_ms: int, fault_handler: FaultHandler) -> None:
        self.fetcher = fetcher
        self._backoff_s = backoff_ms / 1000
        self._fault_handler = fault_handler
        self._news = Event()
        self._thread = Thread(target=self._run, name=fetcher.name, daemon=True)

    @property
    def leader(self) -> BrokerEndPoint:
        """The leader to fetch from."""
        return self.fetcher.leader

    @property
    def partition_count(self) -> int:
        """The number of partitions."""
        return self.fetcher.partition_count

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def figures(self) -> FetcherFigures:
        """The counters and lags for metrics."""
        return self.fetcher.figures()

    def start(self) -> None:
        """Start the thread."""
        self.fetcher.start()
        self._thread.start()

    def shutdown(self) -> None:
        """End the fetcher without waiting for the thread."""
        self.fetcher.shutdown()
        self._news.set()

    def await_shutdown(self, timeout_s: float) -> bool:
        """Wait for the thread; returns whether it has ended, True at once for a call from the thread itself."""
        if self._thread is current_thread():
            return True
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def add_partitions(self, states: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Fetch these partitions too."""
        self.fetcher.add_partitions(states)
        self._news.set()

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Stop fetching these partitions."""
        return self.fetcher.remove_partitions(partitions)

    def remove_all_partitions(self) -> Mapping[TopicPartition, InitialFetchState]:
        """Stop fetching all partitions."""
        return self.fetcher.remove_all_partitions()

    def mark_for_truncation(self, name: TopicPartition, offset: int) -> None:
        """Truncate a partition before the next fetch."""
        self.fetcher.mark_for_truncation(name, offset)
        self._news.set()

    def _run(self) -> None:
        while self.fetcher.running:
            self._news.clear()
            try:
                worked = self.fetcher.do_work()
            except Exception as error:
                self._fault_handler.handle_fault(f"{self.fetcher.name}: a round of fetching", error)
                worked = False
            if not worked and self.fetcher.running:
                self._news.wait(self._backoff_s)
