"""A fetcher with its own thread."""

from __future__ import annotations

import threading

from structlog.testing import capture_logs

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.fetch.fetcher import InitialFetchState
from kraftlake.replica_manager.fetch.fetcher_manager import FetcherManager
from kraftlake.replica_manager.fetch.fetcher_thread import ReplicaFetcherThread
from kraftlake.replica_manager.fetch.leader_end_point import LeaderUnreachableError
from kraftlake.runtime.fault_handler import LoggingFaultHandler
from tests.replica_manager.cluster import Cluster
from tests.waiting import PATIENCE

FOO0 = TopicPartition("foo", 0)
SOON = PATIENCE


class Threads:
    """Broker 2's fetcher, driven by a thread; `fetched` is set by each answer with data."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.create()
        self.cluster.publish()
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


def test_a_thread_fetches_until_its_shutdown():
    made = Threads()
    made.thread.start()
    assert made.thread._thread.name == "ReplicaFetcherThread-0-1"
    made.cluster.append(1, b"a")
    assert made.fetched.wait(SOON)
    made.thread.shutdown()
    assert made.thread.await_shutdown(SOON)
    assert not made.thread.is_alive
    assert made.cluster.nodes[2].log(FOO0).log_end_offset == 1


def test_an_error_goes_to_the_fault_handler_and_the_next_round_follows():
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
    assert made.thread.await_shutdown(SOON)
    assert made.faults.faults == 1


def test_an_added_partition_ends_the_wait():
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
    assert made.thread.await_shutdown(SOON)


class Connection:
    """A leader that answers once `go_on` is set; close() ends the wait only if it `aborts`."""

    def __init__(self, end_point, *, aborts: bool) -> None:
        self.broker_end_point, self.fetch_now, self.aborts = end_point.broker_end_point, end_point.fetch, aborts
        self.asked, self.go_on = threading.Event(), threading.Event()
        self.is_closed = False

    def fetch(self, request):
        self.asked.set()
        assert self.go_on.wait(SOON)
        if self.is_closed and self.aborts:
            raise LeaderUnreachableError("closed")
        return self.fetch_now(request)

    def close(self) -> None:
        self.is_closed = True
        if self.aborts:
            self.go_on.set()


class Slow(Threads):
    """The thread waits for the leader's answer, in a fetcher manager."""

    def __init__(self, *, aborts: bool) -> None:
        super().__init__()
        self.connection = self.fetcher._end_point = Connection(self.fetcher._end_point, aborts=aborts)
        states = self.fetcher.remove_all_partitions()
        self.cluster.append(1, b"a")
        self.manager = FetcherManager(lambda fetcher_id, leader: self.thread, 1)
        self.manager.add_fetcher_for_partitions(states)
        assert self.connection.asked.wait(SOON)

    def log(self):
        return self.cluster.nodes[2].log(FOO0)


def test_closing_aborts_a_fetch_that_waits_for_its_leader():
    slow = Slow(aborts=True)
    assert slow.manager.close(SOON) == []
    assert not slow.thread.is_alive
    assert (slow.log().log_end_offset, slow.faults.faults) == (0, 0)


def test_a_fetcher_that_ends_keeps_no_lock_and_its_late_answer_changes_no_log():
    slow = Slow(aborts=False)
    slow.manager.remove_fetcher_for_partitions([FOO0])
    slow.manager.shutdown_idle_fetchers()
    others = threading.Thread(target=slow.manager.fetchers, daemon=True)
    others.start()
    others.join(SOON)
    assert not others.is_alive()
    assert slow.thread.is_alive
    slow.connection.go_on.set()
    assert slow.manager.close(SOON) == []
    assert slow.log().log_end_offset == 0


def test_a_closed_fetcher_with_partitions_ignores_a_late_answer():
    slow = Slow(aborts=False)
    slow.thread.shutdown()
    slow.connection.go_on.set()
    assert slow.thread.await_shutdown(SOON)
    assert (slow.log().log_end_offset, slow.fetcher.partition_count) == (0, 0)


def test_a_thread_that_does_not_end_is_named_and_logged():
    slow = Slow(aborts=False)
    slow.manager.remove_fetcher_for_partitions([FOO0])
    slow.manager.shutdown_idle_fetchers()
    with capture_logs() as logs:
        assert slow.manager.close(0) == ["ReplicaFetcherThread-0-1"]
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["fetchers_do_not_end"]
    slow.connection.go_on.set()
    assert slow.thread.await_shutdown(SOON)


def test_a_fetcher_can_close_its_own_manager_while_it_answers_others():
    slow = Slow(aborts=True)
    closed: list[list[str]] = []
    done = threading.Event()

    def close_all(_response) -> None:
        closed.append(slow.manager.close(SOON))
        done.set()

    slow.fetcher.handle_response = close_all
    slow.connection.go_on.set()
    assert done.wait(SOON)
    assert slow.thread.await_shutdown(SOON)
    assert (closed, slow.faults.faults) == ([[]], 0)
