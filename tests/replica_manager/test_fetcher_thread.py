"""A fetcher with a thread of its own."""

from __future__ import annotations

import threading

from kraftlake.delta import TopicPartition
from kraftlake.replica_manager.fetcher_thread import ReplicaFetcherThread
from kraftlake.replica_manager.fetchers import InitialFetchState
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from tests.replica_manager.cluster import Cluster

FOO0 = TopicPartition("foo", 0)
SOON = 20.0


class Threads:
    """Broker 2's fetcher, taken over by a thread; `fetched` is set with each answer that brings something."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.create()
        self.cluster.tell()
        (self.fetcher,) = self.cluster.nodes[2].fetchers()
        self.fetched = threading.Event()
        self.faults = LoggingFaultHandler("test")
        self.handle = self.fetcher.handle_response
        self.fetcher.handle_response = self._handle
        self.thread = ReplicaFetcherThread(self.fetcher, backoff_ms=1, fault_handler=self.faults)

    def _handle(self, response) -> None:
        self.handle(response)
        if any(fetched.data for fetched in response.partitions.values()):
            self.fetched.set()


def test_it_fetches_until_it_is_shut_down():
    made = Threads()
    made.thread.start()
    assert made.thread._thread.name == "ReplicaFetcherThread-0-1"
    made.cluster.append(1, b"a")
    assert made.fetched.wait(SOON)
    made.thread.shutdown()
    assert not made.thread.is_alive
    assert made.cluster.nodes[2].log(FOO0).log_end_offset == 1


def test_a_fault_is_told_and_the_next_round_goes_on():
    made = Threads()
    handle = made.handle
    faults = iter([RuntimeError("once")])

    def faulty(response) -> None:
        error = next(faults, None)
        if error is not None:
            raise error
        handle(response)

    made.handle = faulty
    made.cluster.append(1, b"a")
    made.thread.start()
    assert made.fetched.wait(SOON)
    made.thread.shutdown()
    assert made.faults.faults == 1


def test_a_partition_that_is_added_ends_the_wait():
    made = Threads()
    states = made.fetcher.remove_all_partitions()
    made.thread._backoff_s = SOON * 10
    idle = threading.Event()
    build = made.fetcher.build_fetch

    def building():
        request = build()
        if request is None:
            idle.set()
        return request

    made.fetcher.build_fetch = building
    made.cluster.append(1, b"a")
    made.thread.start()
    assert idle.wait(SOON)
    assert all(isinstance(state, InitialFetchState) for state in states.values())
    made.thread.add_partitions(states)
    assert made.fetched.wait(SOON)
    assert made.thread.partition_count == 1
    assert list(made.thread.remove_partitions([FOO0])) == [FOO0]
    made.thread.shutdown()
