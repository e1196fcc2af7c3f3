"""The assignment of partitions to fetchers."""

from __future__ import annotations

import pytest

from kraftlake.delta.topics.local_replica_changes import TopicPartition
from kraftlake.replica_manager.fetch.fetcher import BrokerEndPoint, InitialFetchState
from kraftlake.replica_manager.fetch.fetcher_manager import FetcherManager, java_hash
from kraftlake.replica_manager.replay.replayed_broker import StillFetcher

LEADER = BrokerEndPoint(2, "b2", 9092)


def state(leader: BrokerEndPoint = LEADER) -> InitialFetchState:
    return InitialFetchState(topic_id=None, leader=leader, current_leader_epoch=0, offset=0)


def test_the_hash_is_javas():
    assert java_hash("") == 0
    assert java_hash("__consumer_offsets") == -970371369
    assert java_hash("föö") == 105894
    assert java_hash("\U0001f600") == 1772899


def test_a_partition_has_the_fetcher_id_of_kafka():
    fetchers = FetcherManager(StillFetcher, 4)
    assert [fetchers.fetcher_id(TopicPartition("foo", n)) for n in range(4)] == [
        (31 * 101574 + n) % 4 for n in range(4)
    ]
    assert fetchers.fetcher_id(TopicPartition("__consumer_offsets", 0)) == ((31 * -970371369) & 0x7FFFFFFF) % 4


def test_an_added_or_removed_partition_is_no_longer_failed():
    fetchers = FetcherManager(StillFetcher, 1)
    a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    fetchers.add_failed_partition(a)
    fetchers.add_failed_partition(b)
    fetchers.add_fetcher_for_partitions({a: state()})
    assert fetchers.failed_partitions == {b}
    fetchers.remove_fetcher_for_partitions([b])
    assert fetchers.failed_partitions == set()


def test_another_number_of_fetchers_reassigns_every_partition_by_its_hash():
    fetchers = FetcherManager(StillFetcher, 3)
    names = [TopicPartition("foo", n) for n in range(9)]
    fetchers.add_fetcher_for_partitions({name: state() for name in names})
    assert sorted(fetchers.fetchers()) == [(2, 0), (2, 1), (2, 2)]
    fetchers.resize(2)
    assert sorted(fetchers.fetchers()) == [(2, 0), (2, 1)]
    for (_, fetcher_id), fetcher in fetchers.fetchers().items():
        assert all(fetchers.fetcher_id(name) == fetcher_id for name in fetcher.states)
    assert sum(fetcher.partition_count for fetcher in fetchers.fetchers().values()) == 9


def test_closing_ends_all_fetchers():
    fetchers = FetcherManager(StillFetcher, 1)
    fetchers.add_fetcher_for_partitions({TopicPartition("foo", 0): state()})
    fetchers.close()
    assert fetchers.fetchers() == {}


def test_a_fetcher_whose_start_or_end_raises_is_not_kept():
    class Faulty(StillFetcher):
        def start(self) -> None:
            if starts.pop():
                raise RuntimeError("can't start new thread")

        def shutdown(self) -> None:
            raise OSError("close failed")

    starts = [False, True]
    fetchers = FetcherManager(Faulty, 1)
    a = TopicPartition("a", 0)
    with pytest.raises(RuntimeError):
        fetchers.add_fetcher_for_partitions({a: state()})
    assert fetchers.fetchers() == {}
    fetchers.add_fetcher_for_partitions({a: state()})
    assert [fetcher.partition_count for fetcher in fetchers.fetchers().values()] == [1]
    fetchers.remove_fetcher_for_partitions([a])
    fetchers.shutdown_idle_fetchers()
    assert fetchers.fetchers() == {}
